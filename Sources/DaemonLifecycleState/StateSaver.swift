// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
import Synchronization

extension LifecycleObservable {
  /// Adds an observer that saves on ShouldSaveState, and at an interval if one is given.
  ///
  /// ```swift
  /// lifecycle.addStateSaver(store, every: .seconds(60)) {
  ///   await poller.bytes
  /// }
  /// ```
  ///
  /// ShouldSaveState is delivered on each pause, before a reload and before the end. A save that fails is in the report
  /// of its delivery. The observer's name is `StateSaver`, with the store's name, if that has one: `StateSaver orders`.
  ///
  /// The subject retains the observer, and the observer retains the store with its lock. In a hook the closure runs,
  /// and the disk is waited for, on the subject's threads, unless the closure is isolated elsewhere.
  ///
  /// - Parameters:
  ///   - store: The store. Load from it first; otherwise its first save loads. If the loaded state can't be used, add
  ///     no saver, or have `bytes` throw: a save would replace that state by the daemon's.
  ///   - interval: The time between two additional saves, on the subject's clock. Default `nil`: none.
  ///   - phase: Its place in the order. Default `.standard`.
  ///   - bytes: Makes the bytes of each save. Its error is the hook's, and the old state is kept.
  /// - Returns: The observer, to save at other times.
  @discardableResult public func addStateSaver(
    _ store: StateStore, every interval: Duration? = nil, phase: LifecyclePhase = .standard,
    bytes: @escaping @Sendable () async throws -> [UInt8]
  ) -> StateSaver {
    let saver = StateSaver(store, bytes)
    let name = store.name == "state" ? nil : "StateSaver \(store.name)"
    addObserver(saver, name: name, phase: phase)
    if let interval { saver.startTimer(self, interval, name, phase) }
    return saver
  }
}

/// An observer that saves the bytes of a store: see `addStateSaver`.
///
/// Bytes that are on disk already are not saved again. Requests that arrive during a save share one save that begins
/// after it. Safe to use from any thread.
public final class StateSaver: SaveObserver {
  let store: StateStore
  private let bytes: @Sendable () async throws -> [UInt8]
  private let rounds = Mutex(Rounds())
  private let timer = Mutex<Task<Void, Never>?>(nil)

  /// The saves, one after another. Each serves all requests made before it began.
  private struct Rounds {
    /// The number of saves that have begun.
    var begun: UInt64 = 0
    /// The last save that has ended, and its result.
    var ended: (round: UInt64, result: Result<Bool, any Error>) = (0, .success(false))
    /// Whether a save is running; the next begins only when none is.
    var isRunning: Bool { begun > ended.round }
    /// The callers that wait for the running save, in order of arrival.
    var waiting: [Sleeper] = []
  }

  init(_ store: StateStore, _ bytes: @escaping @Sendable () async throws -> [UInt8]) {
    (self.store, self.bytes) = (store, bytes)
  }

  deinit { endTimer() }

  /// Saves, unless the bytes are unchanged.
  ///
  /// - Throws: The error that the closure throws, or `StateError`.
  public func shouldSaveState(_ notification: ShouldSaveState) async throws { try await save() }

  // MARK: Saving

  /// Saves now, unless the bytes are unchanged.
  ///
  /// Returns when a save that began after this call has ended. Outside of a hook it waits for the disk on the caller's
  /// executor.
  ///
  /// - Returns: Whether it wrote to disk.
  /// - Throws: The error that the closure throws, or `StateError`.
  @discardableResult
  public nonisolated(nonsending) func save() async throws -> Bool {
    var wanted: UInt64?
    while true {
      switch next(&wanted) {
      case .served(let round, .failure(let error))
      where error is CancellationError && !Task.isCancelled:
        // The caller that was saving was cancelled, and this one was not. Any later save will do, another sharer's too.
        wanted = round + 1
      case .served(_, let result): return try result.get()
      case .wait(let sleeper):
        try await sleeper.wait { sleeper.end(throwing: CancellationError()) }
      case .run(let round): return try await run(round).get()
      }
    }
  }

  /// The number of callers that wait for the running save, or were cancelled meanwhile.
  var waitingForTesting: Int { rounds.withLock { $0.waiting.count } }

  private enum Turn {
    /// Served by the round of this number, which began in time and has ended.
    case served(UInt64, Result<Bool, any Error>)
    case wait(Sleeper)
    case run(UInt64)
  }

  /// - Parameter wanted: The first round that will do; `nil` for the next one.
  @inline(never) private func next(_ wanted: inout UInt64?) -> Turn {
    rounds.withLock { rounds in
      let first = wanted ?? rounds.begun + 1
      wanted = first
      if rounds.ended.round >= first { return .served(rounds.ended.round, rounds.ended.result) }
      if rounds.isRunning {
        let sleeper = Sleeper()
        rounds.waiting.append(sleeper)
        return .wait(sleeper)
      }
      rounds.begun += 1
      return .run(rounds.begun)
    }
  }

  private nonisolated(nonsending) func run(_ round: UInt64) async -> Result<Bool, any Error> {
    let result: Result<Bool, any Error>
    do { result = .success(try store.saveIfChanged(try await bytes())) } catch {
      result = .failure(error)
    }
    ended(round, result)
    return result
  }

  @inline(never) private func ended(_ round: UInt64, _ result: Result<Bool, any Error>) {
    let waiting = rounds.withLock { rounds in
      rounds.ended = (round, result)
      defer { rounds.waiting = [] }
      return rounds.waiting
    }
    for sleeper in waiting { sleeper.end() }
  }

  // MARK: The interval

  /// Posts a notification at each interval rather than saving, so that the save is a hook, with a deadline, a report
  /// and a thread of the subject.
  fileprivate func startTimer(
    _ lifecycle: some LifecycleObservable, _ interval: Duration, _ name: String?,
    _ phase: LifecyclePhase
  ) {
    lifecycle.observe(SaveIsDue.self, owner: self, name: name, phase: phase) { saved, due in
      if due.state == ObjectIdentifier(saved) { try await saved.save() }
    }
    // ShouldSaveState does the last save.
    lifecycle.observe(WillTerminate.self, owner: self, name: name, phase: phase) { saved, _ in
      saved.endTimer()
    }
    let due = SaveIsDue(state: ObjectIdentifier(self))
    timer.withLock {
      $0 = Task.detached { [weak lifecycle] in
        guard let ticks = lifecycle?.ticks(every: interval) else { return }
        // The first tick arrives at once, when nothing can have changed yet.
        do {
          for try await tick in ticks where tick > 0 {
            guard let lifecycle else { return }
            await lifecycle.post(due)
          }
        } catch {}  // Cancelled, or the subject is gone.
      }
    }
  }

  @inline(never) private func endTimer() { timer.withLock { $0 }?.cancel() }
}

/// The notification that the interval of a saver is over.
private struct SaveIsDue: CustomNotification, CustomStringConvertible {
  let state: ObjectIdentifier
  var description: String { "SaveIsDue" }
}
