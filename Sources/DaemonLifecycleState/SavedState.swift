// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
import Synchronization

/// An observer that saves on ShouldSaveState, and at intervals.
///
///     let saved = SavedState(lifecycle: lifecycle, store: store, every: .seconds(60)) { await poller.bytes }
///
/// It saves on ShouldSaveState, so on every pause, before a reload, and as the last thing before the end; and as often
/// as asked for besides. Bytes that are on disk already are not saved again. Requests that come while a save is on its
/// way share one save that begins after it. A save that fails is in the report of its delivery.
///
/// The subject holds it, as every observer, until it is removed or the daemon has ended. It holds the store, and so the store's lock, and what the
/// closure captures. The closure runs and the disk is waited for in the hook, on the subject's threads, except where
/// the closure is isolated elsewhere. Safe to use from any thread.
public final class SavedState: StateObserver {
  let store: StateStore
  private let bytes: @Sendable () async throws -> [UInt8]
  private let rounds = Mutex(Rounds())
  private let timer = Mutex<Task<Void, Never>?>(nil)

  /// One save after another; each serves all who asked before it began.
  private struct Rounds {
    /// How many have begun.
    var begun: UInt64 = 0
    /// The last that has ended, and how.
    var ended: (round: UInt64, result: Result<Bool, any Error>) = (0, .success(false))
    /// One begins only when none runs.
    var isRunning = false
    /// Those who wait for the one that runs to end, in the order they came.
    var waiting: [Sleeper] = []
  }

  /// Makes the observer, and adds it to `lifecycle`.
  ///
  /// - Parameters:
  ///   - lifecycle: The subject, or a mock, that says when.
  ///   - store: Load from it before: a save by a store that has not loaded loads first.
  ///   - interval: How often to save besides, on the subject's clock; `nil` and no timer by default.
  ///   - phase: Where it stands in the order: on the way down, it hears after those added to it later.
  ///   - bytes: Makes the bytes of each save. What it throws is the hook's error, and the old state stays.
  public init(
    lifecycle: some LifecycleObservable, store: StateStore, every interval: Duration? = nil,
    phase: LifecyclePhase = .standard,
    bytes: @escaping @Sendable () async throws -> [UInt8]
  ) {
    self.store = store
    self.bytes = bytes
    lifecycle.addObserver(self, phase: phase)
    if let interval { startTimer(lifecycle, interval, phase) }
  }

  deinit { timer.withLock { $0 }?.cancel() }

  public func shouldSaveState(_ notification: ShouldSaveState) async throws { try await save() }

  // MARK: Saving

  /// Saves now, unless nothing has changed.
  ///
  /// Returns when a save has ended that began after this was called. Outside of a hook, the disk is waited for on the
  /// caller's executor's threads.
  ///
  /// - Returns: Whether it wrote.
  /// - Throws: What the closure throws, or `StateError`.
  @discardableResult
  public func save() async throws -> Bool {
    var wanted = rounds.withLock { $0.begun + 1 }
    while true {
      switch next(wanted) {
      case .served(let round, .failure(let error))
      where error is CancellationError && !Task.isCancelled:
        // The one who saved was cancelled, and we were not. Any later save will do, another sharer's too.
        wanted = round + 1
      case .served(_, let result): return try result.get()
      case .wait(let sleeper): try await sleeper.untilEnd()
      case .run(let round): return try await run(round).get()
      }
    }
  }

  /// How many wait for the save that runs, or have been cancelled meanwhile.
  var waitingForTesting: Int { rounds.withLock { $0.waiting.count } }

  private enum Turn {
    /// By the round of this number, which began in time and has ended.
    case served(UInt64, Result<Bool, any Error>)
    case wait(Sleeper)
    case run(UInt64)
  }

  private func next(_ wanted: UInt64) -> Turn {
    rounds.withLock { rounds in
      if rounds.ended.round >= wanted { return .served(rounds.ended.round, rounds.ended.result) }
      if rounds.isRunning {
        let sleeper = Sleeper()
        rounds.waiting.append(sleeper)
        return .wait(sleeper)
      }
      rounds.begun += 1
      rounds.isRunning = true
      return .run(rounds.begun)
    }
  }

  private func run(_ round: UInt64) async -> Result<Bool, any Error> {
    let result: Result<Bool, any Error>
    do { result = .success(try store.saveIfChanged(try await bytes())) } catch {
      result = .failure(error)
    }
    let waiting = rounds.withLock { rounds in
      rounds.ended = (round, result)
      rounds.isRunning = false
      defer { rounds.waiting = [] }
      return rounds.waiting
    }
    for sleeper in waiting { sleeper.end() }
    return result
  }

  // MARK: The interval

  /// Posts, rather than saves: so the save is a hook, with a deadline, a report and a thread of the subject's.
  private func startTimer(
    _ lifecycle: some LifecycleObservable, _ interval: Duration, _ phase: LifecyclePhase
  ) {
    lifecycle.observe(SaveIsDue.self, owner: self, phase: phase) { saved, due in
      if due.state == ObjectIdentifier(saved) { try await saved.save() }
    }
    // The last save is ShouldSaveState's.
    lifecycle.observe(WillTerminate.self, owner: self, phase: phase) { saved, _ in
      saved.timer.withLock { $0 }?.cancel()
    }
    let due = SaveIsDue(state: ObjectIdentifier(self))
    timer.withLock {
      $0 = Task.detached { [weak lifecycle] in
        guard let ticks = lifecycle?.ticks(every: interval) else { return }
        // The first tick comes at once, when nothing can have changed yet.
        do {
          for try await tick in ticks where tick > 0 {
            guard let lifecycle else { return }
            await lifecycle.post(due)
          }
        } catch {}  // Cancelled, or the subject is gone.
      }
    }
  }
}

/// The interval of a ``SavedState`` is over.
private struct SaveIsDue: CustomNotification {
  let state: ObjectIdentifier
}

extension Sleeper {
  /// Returns when it is ended; throws when the task is cancelled meanwhile.
  fileprivate func untilEnd() async throws {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { _ = wait($0) }
    } onCancel: {
      end(throwing: CancellationError())
    }
  }
}
