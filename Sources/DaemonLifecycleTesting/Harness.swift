// SPDX-License-Identifier: Apache-2.0
package import DaemonLifecycle
import Synchronization

/// The harness of a mock, or of a core in a test. Its locks are taken last.
package final class Harness: LifecycleHarness {
  struct Record {
    var calls: [String] = []
    var delivered: [any LifecycleNotification] = []
    var reports: [LifecycleReport] = []
    var exitStatus: Int32?
  }

  private struct Launch {
    /// The state that the mock shows until its test's first event, which launches it.
    var initialState: LifecycleState?
    /// Whether that launch is under way.
    var isUnderWay = false
    /// The inputs that arrived meanwhile, in order.
    var delayed: [DelayedInput] = []
  }

  private let record = Mutex(Record())
  private let launch: Mutex<Launch>
  /// The waits of tests: until so many tasks sleep on the clock, or until nothing is being delivered.
  private let waiters = Mutex<[(sleeper: Sleeper, count: Int?)]>([])
  /// A number that grows each time a test moves the clock.
  let steps = Atomic<Int>(0)
  /// How many tasks slept when the test last waited for that.
  let sleepers = Atomic<Int>(0)

  /// - Parameter initialState: The state of a mock that its test's first event launches.
  package init(_ initialState: LifecycleState? = nil) {
    launch = Mutex(Launch(initialState: initialState))
  }

  // MARK: The record

  @inline(never) func change(_ body: (inout Record) -> Void) { record.withLock { body(&$0) } }

  @inline(never) var current: Record { record.withLock { $0 } }

  package func didCall(_ call: String) { change { $0.calls.append(call) } }
  package func willDeliver(_ notification: any LifecycleNotification) {
    change { $0.delivered.append(notification) }
  }
  package func didFinish(_ report: LifecycleReport) { change { $0.reports.append(report) } }

  // MARK: The launch

  @inline(never) package var initialState: LifecycleState? { launch.withLock(\.initialState) }

  /// Observers that were added before receive the launch and the foreground together, in order.
  @inline(never) package func endSetUp(of core: LifecycleCore) {
    if initialState == nil { return }
    core.launch {
      launch.withLock { launch in
        let isDue = launch.initialState.take() != nil
        if isDue { launch.isUnderWay = true }
        return isDue
      }
    }
  }

  /// A termination, for one, would overtake the launch. A post waits in the core, and is kept here only behind others.
  package func delays(_ input: DelayedInput) -> Bool {
    launch.withLock { launch in
      guard launch.isUnderWay, !launch.delayed.isEmpty || !input.isPost else { return false }
      launch.delayed.append(input)
      return true
    }
  }

  package func inputs(isIdle: Bool) -> [DelayedInput] {
    guard isIdle else { return [] }
    return launch.withLock { launch in
      defer { (launch.isUnderWay, launch.delayed) = (false, []) }
      return launch.delayed
    }
  }

  // MARK: Waits

  /// Ends a wait when `count` tasks or more sleep on the clock; `nil`: when nothing is being delivered and nothing
  /// waits to be, except behind a hold.
  @inline(never) func add(_ waiter: Sleeper, whenSleeping count: Int?) {
    waiters.withLock { $0.append((waiter, count)) }
  }

  package func waits(isIdle: Bool, sleeping: Int) -> [Sleeper] {
    func isOver(_ waiter: (sleeper: Sleeper, count: Int?)) -> Bool {
      waiter.count.map { $0 <= sleeping } ?? isIdle
    }
    return waiters.withLock { waiters in
      defer { waiters.removeAll(where: isOver) }
      return waiters.filter(isOver).map(\.sleeper)
    }
  }
}
