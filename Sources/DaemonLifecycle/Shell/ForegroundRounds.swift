// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The observer behind `addForeground` and `foreground { … }`, which runs the body in rounds, one for each period in the
/// foreground.
///
/// Rounds never overlap. The hook at the end of one waits for the body within its deadline, like that of any observer;
/// with a body that is overdue it is abandoned, and as long as it has not ended no other begins.
final class ForegroundRounds: ForegroundObserver, BackgroundObserver {
  /// A body that runs, or is about to.
  private struct Run {
    let round: ForegroundRound
    var task = BodyTask.waiting
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
    /// Whether no more rounds begin; the caller returns when the running one has ended.
    var isClosing = false
    /// Whether no more rounds begin, in a stop that hurries or does not wait for them; the caller returns with the others.
    var isHurried = false
    var callerIsCancelled = false
    /// Whether the hook at the end of the running round has reached its deadline: nobody waits for the body for longer.
    var isOverdue = false
    /// The hook that waits until the running round is ready.
    var entering: Sleeper?
    /// The hook that waits for the round to end. There is no second one: it is abandoned only with an observer that is
    /// busy from then on.
    var leaving: Sleeper?
    /// Called once, when there are no more rounds.
    var caller: Caller?

    var run: Run? { if case .running(let run) = phase { run } else { nil } }

    /// Changes the body of this round, or of the one that there is. `nil` when it has ended, and another may have begun.
    mutating func update<Result>(
      _ round: ForegroundRound? = nil, _ change: (inout Run) -> Result
    ) -> Result? {
      guard case .running(var run) = phase, round == nil || run.round === round else { return nil }
      defer { phase = .running(run) }
      return change(&run)
    }

    /// Begins a round; returns false when one runs, or no more may begin.
    mutating func begin(_ round: ForegroundRound) -> Bool {
      guard case .none = phase, !isClosing, !isHurried else { return false }
      isOverdue = false
      phase = .running(Run(round: round))
      return true
    }
  }

  typealias Caller = @Sendable (Result<Void, any Error>) -> Void
  typealias Body = @Sendable @isolated(any) (ForegroundRound) async throws -> Void

  private let state = Mutex(State())
  private weak let core: LifecycleCore?
  /// Whether the body is not cancelled at the end of the foreground, but has the hook's time to finish what it has
  /// begun.
  private let drains: Bool
  /// Whether the hook at the beginning of a round waits until the body says that it is ready.
  private let waitsUntilReady: Bool
  private let name: ObserverName
  private let body: Body
  /// What runs the body again; `nil` where nothing does.
  private let restarting: RestartingBody?

  init(
    _ core: LifecycleCore, _ name: ObserverName, drains: Bool = false,
    restarting policy: RestartPolicy? = nil, waitsUntilReady: Bool = false, _ body: @escaping Body
  ) {
    self.core = core
    self.name = name
    self.drains = drains
    self.waitsUntilReady = waitsUntilReady
    restarting = policy.map { RestartingBody(core, $0, name, body) }
    if let restarting {
      self.body = { try await restarting.run($0) }
    } else {
      self.body = body
    }
  }

  // MARK: Hooks

  /// Its hooks, which need no search.
  static let hooks = TypeHooks([
    Hook(foregroundHook, for: WillEnterForeground.self),
    Hook(backgroundHook, for: DidEnterBackground.self),
  ])

  func willEnterForeground(_ notification: WillEnterForeground) async throws {
    if let ready = enter() { try await ready.wait { ready.end(throwing: CancellationError()) } }
  }

  /// Begins a round, unless one runs. Returns what its hook waits for: that the body is ready.
  @inline(never) private func enter() -> Sleeper? {
    let round = ForegroundRound(clock: core?.clock, isReady: !waitsUntilReady) { [weak self] in
      self?.isReady($0)
    }
    let ready = Sleeper()
    let (begins, waits) = state.withLock { state in
      let begins = state.begin(round)
      // The hook may be called again for a round that was not ready in its time.
      let waits = state.run?.round.isReady == false
      if waits { state.entering = ready }
      return (begins, waits)
    }
    if begins { core?.useSwiftPool { self.runBody(round) } }
    return waits ? ready : nil
  }

  private func isReady(_ round: ForegroundRound) {
    let entering = state.withLock { state -> Sleeper? in
      state.run?.round === round ? state.entering.take() : nil
    }
    entering?.end()
  }

  func didEnterBackground(_ notification: DidEnterBackground) async throws {
    guard let end = leave() else { return }
    // Cancelled at its deadline the hook cancels what drains, and waits on: the body is abandoned with it.
    try await end.wait {
      state.withLock { $0.isOverdue = true }
      cancelBody()
    }
  }

  /// Ends the round that runs. Returns what its hook waits for: the end of the body.
  @inline(never) private func leave() -> Sleeper? {
    // In one step, so that the hook waits for the round that it ends.
    let end = Sleeper()
    let run = state.withLock { state in
      if state.run != nil { state.leaving = end }
      return state.run
    }
    guard let run else { return nil }
    // A draining body is notified. Any other is cancelled, also one that was not ready yet, and has nothing to finish.
    if drains, run.round.isReady, !run.task.isWaiting {
      endBody(of: run.round)
    } else {
      cancelBody()
    }
    return end
  }

  // MARK: The caller

  /// Returns when no round runs and none will.
  nonisolated(nonsending) func untilOver() async throws {
    try await withCheckedThrowingContinuation { continuation in
      setCaller { continuation.resume(with: $0) }
    }
  }

  @inline(never) private func setCaller(_ caller: @escaping Caller) {
    let isOver = state.withLock { state in
      state.caller = caller
      if case .over = state.phase { return true }
      return false
    }
    if isOver { endIfIdle() }
  }

  /// Has an error of the body end the daemon, since nobody waits for it.
  func failuresEndTheDaemon() {
    state.withLock { state in
      state.caller = { [weak core, name] result in
        if case .failure(let error) = result {
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

  /// Ends the rounds, since the caller's task was cancelled. In a stop it does not wait a second time for a body that is
  /// overdue.
  @inline(never) func cancel() {
    let isTerminating = core?.isTerminating ?? true
    let caller = state.withLock { state in
      state.callerIsCancelled = true
      return isTerminating && state.isOverdue && state.run != nil ? state.caller.take() : nil
    }
    close()
    caller?(.success(()))
  }

  // MARK: Rounds

  private func runBody(_ round: ForegroundRound) {
    guard state.withLock({ $0.update(round) { $0.task.begin() } }) == true else { return }
    // Detached: a hook's task-local values must not mark the body's work as part of the hook.
    let task = Task.detached(executorPreference: core?.executor.pool) {
      var failure: (any Error)?
      do {
        try await ForegroundRound.$current.withValue(round) { try await self.body(round) }
      } catch { failure = error }
      round.bodyEnded()
      self.ended(failure)
    }
    if state.withLock({ $0.update(round) { $0.task.run(as: task) } }) == true { task.cancel() }
  }

  /// Forgets the failures of a body whose caller has gone on.
  func forget() { restarting?.forget() }

  /// Cancels the body, and lets no other begin, since the stop hurries.
  func hurry() {
    state.withLock { $0.isHurried = true }
    cancelBody()
  }

  /// Cancels a body that is not ready yet, and lets no other begin, since the daemon ends.
  func revoke() {
    guard waitsUntilReady else { return }
    state.withLock { $0.isHurried = true }
    cancelBody(unless: \.round.isReady)
  }

  private func cancelBody(unless isSpared: (Run) -> Bool = { _ in false }) {
    let cancelled = state.withLock { state in
      state.update { isSpared($0) ? nil : ($0.round, $0.task.cancel()) }
    }
    guard let (round, task) = cancelled ?? nil, !task.isCancelled else { return }
    endBody(of: round, cancelling: task.running)
    // Swift's pool had no thread for it, and now it never begins.
    if task.isWaiting { ended(nil) }
  }

  private func endBody(of round: ForegroundRound, cancelling task: Task<Void, Never>? = nil) {
    let handlers = round.beginEnding()
    core?.useSwiftPool {
      for handler in handlers { handler() }
      task?.cancel()
    }
  }

  @inline(never) private func ended(_ error: (any Error)?) {
    let late = error is CancellationError ? nil : error.map { LateError(error: $0) }
    let (entering, leaving, isLost, isUnheard, wasEnding) = state.withLock { state in
      let wasEnding = state.run.map { $0.task.isCancelled || $0.round.isEnding } ?? false
      let wasReady = state.run?.round.isReady ?? true
      state.phase = .none
      // After the requested end the hook that waits for that reports it; only a caller that was cancelled is thrown it.
      // Before it is ready, the hook that waits for that.
      let endsRounds = !wasEnding && wasReady || state.callerIsCancelled && late != nil
      if endsRounds, let error { state.phase = .over(error) }
      let (entering, leaving) = (state.entering.take(), state.leaving.take())
      return (
        entering, leaving, !wasReady && !wasEnding && entering?.hasEnded ?? true,
        wasEnding && !endsRounds && leaving == nil, wasEnding
      )
    }
    entering?.end(throwing: wasEnding ? nil : error)
    if isLost, let error { core?.warn("\(name) has failed before it was ready: \(error)") }
    // In a stop that hurries, or has overtaken the launch, no hook waits for it.
    if isUnheard, let late { core?.warn("\(name) has failed as it was cancelled: \(late.error)") }
    leaving?.end(throwing: late)
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
}
