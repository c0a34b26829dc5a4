// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import TestSupport
import Testing

@testable import DaemonLifecycle

/// The deadlines of a clock, against a plain list of them.
@Suite struct TimerQueueTests {
  @Test(arguments: 0..<20 as Range<UInt64>) func itIsInOrderWhateverIsAddedAndRemoved(seed: UInt64)
  {
    var random = SeededGenerator(seed: seed)
    var queue = TimerQueue()
    var list: [(deadline: MonotonicTime, number: Int, sleeper: Sleeper)] = []
    func expired(at now: MonotonicTime) -> [Sleeper] {
      let all = list.sorted { ($0.deadline, $0.number) < ($1.deadline, $1.number) }
      list.removeAll { $0.deadline <= now }
      return all.filter { $0.deadline <= now }.map(\.sleeper)
    }
    for number in 0..<500 {
      let deadline = MonotonicTime(nanoseconds: .random(in: 0..<100, using: &random))
      let known = list.indices.randomElement(using: &random)
      switch Int.random(in: 0..<8, using: &random) {
      case 0:
        guard let known else { continue }
        queue.remove(list.remove(at: known).sleeper)
      case 1:
        // Its deadline changes.
        guard let known else { continue }
        list.append((deadline, number, list.remove(at: known).sleeper))
        queue.add(list.last!.sleeper, at: deadline)
      case 2:
        let now = MonotonicTime(nanoseconds: deadline.nanoseconds / 4)
        #expect(
          queue.removeExpired(at: now).map(ObjectIdentifier.init)
            == expired(at: now).map(ObjectIdentifier.init))
      default:
        list.append((deadline, number, Sleeper()))
        queue.add(list.last!.sleeper, at: deadline)
      }
      #expect(queue.first == list.map(\.deadline).min() && queue.count == list.count)
    }
    #expect(
      queue.removeExpired(at: .distantFuture).map(ObjectIdentifier.init)
        == expired(at: .distantFuture).map(ObjectIdentifier.init))
  }

  /// Attempts in between change nothing.
  @Test func anAttemptIsLaterEachTime() {
    var backoff = Backoff(longest: .milliseconds(40))
    func isScheduled(after delay: Duration) -> Bool {
      let before = MonotonicTime.now()
      let next = backoff.nextAttempt
      let (earliest, latest) = (before.advanced(by: delay), MonotonicTime.now().advanced(by: delay))
      return (earliest...latest).contains(next)
    }
    for milliseconds in [10, 20, 40, 40] {
      #expect(isScheduled(after: .milliseconds(milliseconds)))
      #expect(isScheduled(after: .milliseconds(milliseconds)))
      backoff.grow()
    }
    backoff.reset()
    #expect(isScheduled(after: .milliseconds(10)))
  }
}
