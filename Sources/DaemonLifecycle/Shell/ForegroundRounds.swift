// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The observer behind `addForeground` and `foreground { … }`, which runs the body in rounds, one for each period in the
/// foreground.
///
/// Rounds never overlap: a resume waits for a body that is overdue. The hooks wait for the body within their deadline,
/// like those of any observer.
final class ForegroundRounds: ForegroundObserver, BackgroundObserver, TerminationObserver {
  /// A body that runs, or is about to.
  private struct Run {
    let round: ForegroundRound
    /// `nil` until it has begun.
    var task: Task<Void, Never>?
    var isCancelled = false
  }

  /// What a body threw after its requested end, such as a library's own error at cancellation.
  struct LateError: Error { let error: any Error }

  private enum Phase {
    /// Becomes `running` with the foreground.
    case none
    /// Becomes `none` when the body ends, or `over`.
    case running(Run)
    /// The body threw, the daemon ended, or the caller was cancelled: no more rounds.
    case over((any Error)?)
  }

  private struct State {
    var phase = Phase.none
    /// Whether the daemon returned to the foreground while the last round's body was still overdue.
    var startsAgain = false
    /// Whether no more rounds begin; the caller returns when the running one has ended.
    var isClosing = false
    var callerIsCancelled = false
    /// The hooks that wait for the round to end.
    var waiting: [Sleeper] = []
    /// Called once, when there are no more rounds.
    var caller: Caller?

    var run: Run? { if case .running(let run) = phase { run } else { nil } }

    /// Begins a round; returns `nil` when one runs, or no more may begin.
    mutating func begin(_ clock: LifecycleClock?) -> ForegroundRound? {
      startsAgain = false
      guard case .none = phase, !isClosing else { return nil }
      let run = Run(round: ForegroundRound(clock: clock))
      phase = .running(run)
      return run.round
    }
  }

  typealias Caller = @Sendable (Result<Void, any Error>) -> Void
  typealias Body = @Sendable @isolated(any) (ForegroundRound) async throws -> Void

  private let state = Mutex(State())
  private weak let core: LifecycleCore?
  /// Whether the body is not cancelled at the end of the foreground, but has the hook's time to finish what it has
  /// begun.
  private let drains: Bool
  private let name: ObserverName
  private let body: Body

  init(
    _ core: LifecycleCore, _ name: ObserverName, drains: Bool = false,
    restarting policy: RestartPolicy? = nil, _ body: @escaping Body
  ) {
    self.core = core
    self.name = name
    self.drains = drains
    if let policy {
      let restarting = RestartingBody(core, policy, name, body)
      self.body = { try await restarting.run($0) }
    } else {
      self.body = body
    }
  }

  private var clock: LifecycleClock? { core.map { LifecycleClock(keeper: $0) } }

  // MARK: Hooks

  /// Its hooks, which need no search.
  static let hooks = [
    Hook(foregroundHook, for: .willEnterForeground), Hook(backgroundHook, for: .didEnterBackground),
    Hook(terminationHook, for: .willTerminate),
  ]

  func willEnterForeground(_ notification: WillEnterForeground) async throws {
    // An overdue round starts the next one as it ends; the hook waits for that end, and for no other.
    let overdueEnds = state.withLock { state -> Sleeper? in
      guard let run = state.run, run.isCancelled || run.round.isEnding else { return nil }
      state.startsAgain = true
      return Self.waiter(&state)
    }
    if let overdueEnds {
      // What that throws is no error of this hook.
      try? await wait(for: overdueEnds, cancelsBody: false)
    } else if let round = state.withLock({ [clock] in $0.begin(clock) }) {
      core?.useSwiftPool { self.runBody(round) }
    }
  }

  func didEnterBackground(_ notification: DidEnterBackground) async throws {
    // In one step, so that the hook waits for the round that it ends.
    let (round, end) = state.withLock { state in
      state.startsAgain = false
      return (state.run?.round, Self.waiter(&state))
    }
    // A draining body is notified, any other is cancelled.
    if drains { endBody(of: round) } else { cancelBody() }
    if let end { try await wait(for: end, cancelsBody: drains) }
  }

  func willTerminate(_ notification: WillTerminate) { close() }

  // MARK: The caller

  /// Returns when no round runs and none will.
  nonisolated(nonsending) func untilOver() async throws {
    try await withCheckedThrowingContinuation { continuation in
      let isOver = state.withLock { state in
        state.caller = { continuation.resume(with: $0) }
        if case .over = state.phase { return true }
        return false
      }
      if isOver { endIfIdle() }
    }
  }

  /// Has an error of the body end the daemon, since nobody waits for it.
  func failuresEndTheDaemon() {
    state.withLock { state in
      state.caller = { [weak core, name] result in
        if case .failure(let error) = result, !(error is CancellationError) {
          core?.handle(.workFailed(Failure(error), of: name))
        }
      }
    }
  }

  /// Ends the rounds, since the daemon has ended.
  func close() {
    state.withLock { $0.isClosing = true }
    cancelBody()
    endIfIdle()
  }

  /// Ends the rounds, since the caller's task was cancelled.
  func cancel() {
    state.withLock { $0.callerIsCancelled = true }
    close()
  }

  // MARK: Rounds

  private func runBody(_ round: ForegroundRound) {
    // Detached: a hook's task-local values must not mark the body's work as part of the hook.
    let task = Task.detached(executorPreference: core?.executor.pool) {
      do {
        try await self.body(round)
        self.ended(nil)
      } catch {
        self.ended(error)
      }
    }
    let isCancelled = state.withLock { state in
      // It may have ended by now, and another may have begun.
      guard var run = state.run, run.round === round else { return false }
      run.task = task
      state.phase = .running(run)
      return run.isCancelled
    }
    if isCancelled { task.cancel() }
  }

  private func cancelBody() {
    let cancelled = state.withLock { state -> Run? in
      state.startsAgain = false
      guard var run = state.run else { return nil }
      run.isCancelled = true
      state.phase = .running(run)
      return run
    }
    endBody(of: cancelled?.round, cancelling: cancelled?.task)
  }

  private func endBody(of round: ForegroundRound?, cancelling task: Task<Void, Never>? = nil) {
    guard let handlers = round?.beginEnding() else { return }
    core?.useSwiftPool {
      for handler in handlers { handler() }
      task?.cancel()
    }
  }

  private func ended(_ error: (any Error)?) {
    let late = error is CancellationError ? nil : error.map { LateError(error: $0) }
    let clock = clock
    // In one step, so that a pause finds either no round and no request for one, or a round to end.
    let (waiting, next) = state.withLock { state in
      let wasEnding = state.run.map { $0.isCancelled || $0.round.isEnding } ?? false
      state.phase = .none
      // After the requested end the hook that waits for that reports it; only a caller that was cancelled is thrown it.
      let endsRounds = !wasEnding || state.callerIsCancelled && late != nil
      if endsRounds, let error { state.phase = .over(error) }
      defer { state.waiting = [] }
      return (state.waiting, state.startsAgain ? state.begin(clock) : nil)
    }
    for sleeper in waiting { sleeper.end(throwing: late) }
    if let next { runBody(next) }
    endIfIdle()
  }

  private func endIfIdle() {
    let (caller, error) = state.withLock { state -> (Caller?, (any Error)?) in
      switch state.phase {
      case .running: return (nil, nil)
      case .none where !state.isClosing: return (nil, nil)
      case .none: state.phase = .over(state.callerIsCancelled ? CancellationError() : nil)
      case .over: break
      }
      guard case .over(let error) = state.phase else { return (nil, nil) }
      return (state.caller.take(), error)
    }
    caller?(error.map { .failure($0) } ?? .success(()))
  }

  /// Returns a sleeper that ends with the running round; `nil` when none is running.
  private static func waiter(_ state: inout State) -> Sleeper? {
    guard state.run != nil else { return nil }
    let sleeper = Sleeper()
    state.waiting.append(sleeper)
    return sleeper
  }

  /// - Parameter cancelsBody: Whether a hook that is cancelled cancels the body and goes on waiting for its end;
  ///   otherwise it throws.
  private func wait(for sleeper: Sleeper, cancelsBody: Bool) async throws {
    try await sleeper.wait {
      if cancelsBody { cancelBody() } else { sleeper.end(throwing: CancellationError()) }
    }
  }
}
