import Synchronization

/// What runs behind `foreground { … }`: an observer that runs the body in rounds, one per foreground.
///
/// Rounds never overlap: a resume waits for a body that is overdue. The hooks wait for the body within
/// their own deadline, like anybody's.
final class ForegroundRounds: ForegroundObserver, BackgroundObserver, TerminationObserver {
  private enum Round {
    /// Becomes `running` with the foreground.
    case none
    /// Becomes `none` when the body ends, or `over`.
    case running(Task<Void, Never>?, isCancelled: Bool)
    /// The body threw, the daemon ended, or the caller was cancelled: no more rounds.
    case over((any Error)?)
  }

  private struct State {
    var round = Round.none
    /// Grows with each round, so that a late task is not taken for that of another.
    var number = 0
    /// The foreground came back while the last round's body was still overdue.
    var startsAgain = false
    /// No round begins after this; the caller returns when the one that runs has ended.
    var isClosing = false
    var callerIsCancelled = false
    /// Hooks that wait for the round to end.
    var waiting: [Sleeper] = []
    var caller: CheckedContinuation<Void, any Error>?

    /// False when a round runs, or no more may.
    mutating func begin() -> Bool {
      startsAgain = false
      guard case .none = round, !isClosing else { return false }
      round = .running(nil, isCancelled: false)
      number += 1
      return true
    }
  }

  private let state = Mutex(State())
  private let body: @Sendable @isolated(any) () async throws -> Void

  init(_ body: @escaping @Sendable @isolated(any) () async throws -> Void) { self.body = body }

  // MARK: Hooks

  func willEnterForeground(_ notification: WillEnterForeground) async throws {
    // An overdue round starts the next one as it ends; the hook waits for that end, and for no other.
    let overdueEnds = state.withLock { state -> Sleeper? in
      guard case .running(_, true) = state.round else { return nil }
      state.startsAgain = true
      return Self.waiter(&state)
    }
    if let overdueEnds { try await Self.wait(for: overdueEnds) } else { start() }
  }

  func didEnterBackground(_ notification: DidEnterBackground) async throws {
    cancelRound()
    if let end = state.withLock({ Self.waiter(&$0) }) { try await Self.wait(for: end) }
  }

  func willTerminate(_ notification: WillTerminate) { close() }

  // MARK: The caller

  /// Returns when no round runs and none will.
  nonisolated(nonsending) func untilOver() async throws {
    try await withCheckedThrowingContinuation { continuation in
      let result: Result<Void, any Error>? = state.withLock { state in
        if case .over(let error) = state.round {
          return error.map { .failure($0) } ?? .success(())
        }
        state.caller = continuation
        return nil
      }
      if let result { continuation.resume(with: result) }
    }
  }

  /// The daemon has ended.
  func close() {
    state.withLock { $0.isClosing = true }
    cancelRound()
    endIfIdle()
  }

  /// The caller's task was cancelled.
  func cancel() {
    state.withLock { $0.callerIsCancelled = true }
    close()
  }

  // MARK: Rounds

  private func start() {
    if state.withLock({ $0.begin() }) { runBody() }
  }

  private func runBody() {
    let number = state.withLock(\.number)
    // Detached: a hook's task-local values must not mark what the body does as part of the hook.
    let task = Task.detached {
      do {
        try await self.body()
        self.ended(nil)
      } catch {
        self.ended(error)
      }
    }
    let isCancelled = state.withLock { state in
      // It may have ended by now, and another may have begun.
      guard state.number == number, case .running(_, let isCancelled) = state.round else {
        return false
      }
      state.round = .running(task, isCancelled: isCancelled)
      return isCancelled
    }
    if isCancelled { task.cancel() }
  }

  private func cancelRound() {
    let task = state.withLock { state -> Task<Void, Never>? in
      state.startsAgain = false
      guard case .running(let task, _) = state.round else { return nil }
      state.round = .running(task, isCancelled: true)
      return task
    }
    task?.cancel()
  }

  private func ended(_ error: (any Error)?) {
    // In one step, so that a pause finds either no round and no request for one, or a round to cancel.
    let (waiting, begins) = state.withLock { state in
      var wasCancelled = false
      if case .running(_, let isCancelled) = state.round { wasCancelled = isCancelled }
      state.round = .none
      // The CancellationError of a pause is what the pause asked for; any other ends the rounds.
      if let error, !(wasCancelled && error is CancellationError) { state.round = .over(error) }
      defer { state.waiting = [] }
      return (state.waiting, state.startsAgain && state.begin())
    }
    for sleeper in waiting { sleeper.end() }
    if begins { runBody() }
    endIfIdle()
  }

  private func endIfIdle() {
    let (caller, error) = state.withLock {
      state -> (CheckedContinuation<Void, any Error>?, (any Error)?) in
      switch state.round {
      case .running: return (nil, nil)
      case .none where !state.isClosing: return (nil, nil)
      case .none: state.round = .over(state.callerIsCancelled ? CancellationError() : nil)
      case .over: break
      }
      guard case .over(let error) = state.round else { return (nil, nil) }
      defer { state.caller = nil }
      return (state.caller, error)
    }
    if let error { caller?.resume(throwing: error) } else { caller?.resume() }
  }

  /// Ends with the round that runs; `nil` when none does.
  private static func waiter(_ state: inout State) -> Sleeper? {
    guard case .running = state.round else { return nil }
    let sleeper = Sleeper()
    state.waiting.append(sleeper)
    return sleeper
  }

  /// Throws when the hook is cancelled meanwhile.
  private static func wait(for sleeper: Sleeper) async throws {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { _ = sleeper.wait($0) }
    } onCancel: {
      sleeper.end(throwing: CancellationError())
    }
  }
}
