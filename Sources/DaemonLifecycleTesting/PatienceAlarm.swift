// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd
import Synchronization

/// A test has waited in vain.
package struct ImpatienceError: Error {
  /// How long nothing has happened; `nil`: the waiting task was cancelled.
  let duration: Duration?
  /// A sentence for each thing that has not come to its end.
  let pending: [String]

  init(after duration: Duration?, pending: [String]) {
    (self.duration, self.pending) = (duration, pending)
  }

  /// Why the wait has ended.
  var reason: String {
    duration.map { "For \($0.forReading) of real time no hook has begun or ended." }
      ?? "The task that waited was cancelled."
  }
}

/// Ends a test's wait when nothing happens for a while.
///
/// On a thread of its own: what a test is stuck on may be Swift's cooperative pool, or Dispatch. The time starts again
/// whenever a hook has begun or ended, and while another task of the test moves the clock. A slow machine is no fault: where
/// the pool is so busy with other tests that nothing gets its turn at once, the time does not count, until ten times as
/// much has passed.
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

  /// How long nothing has happened; `nil`: the wait is over.
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

/// Asks Swift's cooperative pool for a turn.
private final class PoolTurn: Sendable {
  private let asked = MonotonicTime.now()
  private let answered = Mutex<MonotonicTime?>(nil)

  init() { Task.detached { self.answered.withLock { $0 = .now() } } }

  func came(within limit: Duration) -> Bool {
    answered.withLock { $0.map { asked.duration(to: $0) <= limit } ?? false }
  }
}
