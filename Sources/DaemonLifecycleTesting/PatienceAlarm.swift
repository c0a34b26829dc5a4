// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd
import Synchronization

/// The error of a test's wait that took too long.
package struct ImpatienceError: Error {
  /// How long nothing happened; `nil` when the waiting task was cancelled.
  let duration: Duration?
  /// One sentence for each thing that is pending.
  let pending: [String]

  init(after duration: Duration?, pending: [String]) {
    (self.duration, self.pending) = (duration, pending)
  }

  /// The reason why the wait ended.
  var reason: String {
    duration.map { "For \($0.forReading) of real time no hook has begun or ended." }
      ?? "The task that waited was cancelled."
  }
}

/// A timer that ends a test's wait when nothing happens for a while.
///
/// It has its own thread, since a test may be stuck on Swift's cooperative pool or on Dispatch. The time starts again
/// whenever a hook begins or ends, and while another task of the test moves the clock. A slow machine is no failure:
/// while the pool is so busy with other tests that no task gets its turn at once, the time does not count, until ten
/// times as much has passed.
final class PatienceAlarm: Sendable {
  /// Signalled when the wait is over and the test goes on.
  private let isOver = Semaphore()

  init(_ patience: Duration, _ core: LifecycleCore, _ waiter: Sleeper) {
    let isOver = isOver
    let isRunning = Thread.spawn(named: "lifecycle-test") {
      guard let waited = Self.untilPatienceEnds(patience, core, isOver) else { return }
      let error = ImpatienceError(after: waited, pending: core.pending)
      if waiter.end(throwing: error), !isOver.wait(for: .seconds(2)) {
        StandardError.writeLine(
          "lifecycle: " + error.reason
            + " Its test can't go on: Swift's thread pool is blocked. Still pending: "
            + error.pending.joined(separator: "; "))
      }
    }
    if !isRunning {
      StandardError.writeLine(
        "lifecycle: There is no thread that could end a wait for what never happens.")
    }
  }

  func cancel() { isOver.signal() }

  /// Returns how long nothing has happened; `nil` when the wait is over.
  private static func untilPatienceEnds(
    _ patience: Duration, _ core: LifecycleCore, _ isOver: Semaphore
  ) -> Duration? {
    let slice = patience / 10
    var seen = core.progress
    var (slices, promptSlices) = (0, 0)
    while true {
      let turn = PoolTurn()
      if isOver.wait(for: slice) { return nil }
      let now = core.progress
      guard now == seen else {
        (seen, slices, promptSlices) = (now, 0, 0)
        continue
      }
      slices += 1
      if turn.came(within: slice / 5) { promptSlices += 1 }
      if promptSlices == 10 || slices == 100 { return slice * slices }
    }
  }
}

/// A task that shows when Swift's cooperative pool runs it.
private final class PoolTurn: Sendable {
  private let asked = MonotonicTime.now()
  private let answered = Mutex<MonotonicTime?>(nil)

  init() { Task.detached { self.answered.withLock { $0 = .now() } } }

  func came(within limit: Duration) -> Bool {
    answered.withLock { $0.map { asked.duration(to: $0) <= limit } ?? false }
  }
}
