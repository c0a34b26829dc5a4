// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import DaemonLifecycleTesting
import Synchronization

extension MockLifecycleSubject {
  /// Runs a daemon again and again, each time with other interleavings, events and failures, and throws an error that
  /// describes the shortest run it finds in which something is wrong.
  ///
  /// ```swift
  /// @Test func ordersAreNeverLost() async throws {
  ///   try await MockLifecycleSubject.explore(events: 3) { run in
  ///     let store = FakeStore(fails: { run.shouldFail("disk full") })
  ///     run.mock.addObserver(Orders(store))  // a fresh one for each run
  ///     return {  // called when the daemon rests, and at its end
  ///       guard store.saved == store.accepted else { throw Lost(store) }
  ///     }
  ///   }
  /// }
  /// ```
  ///
  /// All jobs of a run (hooks, tasks, actors, the main actor) are performed by one thread, one at a time. Which one is
  /// next, when an event arrives and whether a fake fails is chosen at random. Each run ends with SIGTERM. A run is
  /// wrong if the check throws, or if a hook or work in the foreground does not end in time, or fails although no fake
  /// did. A crash leaves the choices of its run in the file `explored-PID-…` in `$TMPDIR`, else in `/tmp`.
  ///
  /// Code that waits for the real clock, Dispatch, a thread or an executor of its own can't be explored; as a rule this
  /// is detected and reported. See <doc:ExploringADaemon>.
  ///
  /// - Parameters:
  ///   - events: The largest number of events in a run, besides its end. Default 3.
  ///   - duration: How long to explore. Default 5 s.
  ///   - runs: The largest number of runs, for a CI test that does the same on fast and slow machines. Default: any number.
  ///   - requests: Events besides those of the signal map, sleep and wake-up, and memory pressure.
  ///   - configuration: The settings of the daemon. Default: problems are not logged.
  ///   - seed: The same seed makes the same choices. Default 0.
  ///   - text: Choices to repeat, from an error or a file, instead of exploring. Default `nil`.
  ///   - daemon: Sets the daemon up, and returns its check. It must not share state with other runs.
  /// - Returns: A summary of the exploration.
  /// - Throws: An error with a description of the run, and a text to replay it; the error of the set-up; an error if
  ///   this version of Swift can't be explored, or another tool sets the runtime's hooks; `CancellationError`.
  @discardableResult
  nonisolated(nonsending) public static func explore(
    events: Int = 3, for duration: Duration = .seconds(5), runs: Int = .max,
    sending requests: [LifecycleRequest] = [],
    configuration: LifecycleConfiguration = LifecycleConfiguration(logging: .off),
    seed: UInt64 = 0, replaying text: String? = nil,
    _ daemon: @escaping @Sendable (ExploredRun) async throws -> @Sendable () async throws -> Void
  ) async throws -> Exploration {
    let explorer = Explorer(configuration, sending: requests, daemon)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let caller = Mutex(Optional(continuation))
        let answer: Answer = { result in caller.withLock { $0.take() }?.resume(with: result) }
        let hasEnded = Semaphore()
        let starts = Thread.spawn(named: "explorer") {
          let result = Result {
            try RunJobs.capturing {
              if let text { return try explorer.replay(text) }
              return try explorer.explore(max(0, events), for: duration, upTo: runs, seed: seed)
            }
          }
          // The process may end as soon as the caller has its answer.
          explorer.trace.remove()
          answer(result)
          hasEnded.signal()
        }
        let isWatched = Thread.spawn(named: "explorer-watch") { watch(explorer, answer, hasEnded) }
        if !starts || !isWatched {
          explorer.isCancelled.store(true, ordering: .relaxed)
          answer(.failure(ExplorationError("There is no thread for the exploration.")))
        }
      }
    } onCancel: {
      explorer.isCancelled.store(true, ordering: .relaxed)
    }
  }

  /// Resumes the caller, once.
  private typealias Answer = @Sendable (Result<Exploration, any Error>) -> Void

  /// Ends the wait for an explorer that makes no step for ten seconds; its thread can't be ended.
  private static func watch(_ explorer: Explorer, _ answer: @escaping Answer, _ hasEnded: Semaphore)
  {
    var (seen, seconds) = (-1, 0)
    while !hasEnded.wait(for: .seconds(1)) {
      let steps = explorer.steps.load(ordering: .relaxed)
      seconds = steps == seen ? seconds + 1 : 0
      seen = steps
      guard seconds == 10 else { continue }
      explorer.isCancelled.store(true, ordering: .relaxed)
      let run = explorer.current.withLock { $0 }
      let text = run.map { Explorer.text(of: $0.choices.withLock(\.record)) } ?? ""
      // `pending` does not contain work that runs.
      let pending = run.flatMap { $0.mock.core.pending.first ?? $0.mock.core.runningWork }
      answer(
        .failure(
          ExplorationError(
            "A job has run for 10 s: it blocks its thread or never ends. Pending:"
              + " \(pending ?? "nothing").\nAgain with: replaying: \"\(text)\""
          )))
      explorer.trace.remove()
      return
    }
  }
}

/// A summary of an exploration that found nothing wrong.
public struct Exploration: Sendable, CustomStringConvertible {
  /// How many runs there were.
  public internal(set) var runs = 0
  /// How many runs have ended before any time had passed: work that waits for its first tick has done nothing there.
  var runsWithoutTime = 0
  /// How often there was more than one possibility.
  public internal(set) var choices = 0
  /// The situations in which each event has arrived.
  var situations: [String: Set<String>] = [:]

  /// `665 runs, 24,509 choices; events arrived in so many situations: pause 13, reload 11, terminate 10; 73 runs ended
  /// before any time had passed`. A situation is the state with the running hook. An event with 0 was never sent.
  public var description: String {
    let events = situations.sorted { $0.key < $1.key }.map { "\($0) \($1.count)" }
    return "\(runs) runs, \(choices) choices; events arrived in so many situations: "
      + events.joined(separator: ", ")
      + "; \(runsWithoutTime) run\(runsWithoutTime == 1 ? "" : "s") ended before any time had passed"
  }
}
