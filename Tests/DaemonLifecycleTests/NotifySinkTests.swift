// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import TestSupport
import Testing

@testable import DaemonLifecycle

/// What becomes of messages that can't be sent at once.
@Suite("Notify: the queue", .timeLimit(.minutes(5))) struct NotifySinkTests {
  // MARK: The queue

  private func sent(_ waiting: NotifyQueue) -> [[NotifyField]] {
    var (queue, messages) = (waiting, [[NotifyField]]())
    while let first = queue.first {
      messages.append(first)
      queue.removeFirst()
    }
    return messages
  }

  /// A manager that reads nothing for hours: of the reloads the newest is enough, and nothing else is lost.
  @Test func reloadsThatNobodyReadsDoNotPileUp() {
    var queue = NotifyQueue()
    queue.append([.ready, .status("a")])
    for number in 1...1000 as ClosedRange<UInt64> {
      queue.append([.reloading(at: .microseconds(number)), .status("reloading")])
      queue.append([.custom(name: "RESTART_RESET", value: "1")])
      queue.append([.ready, .status("\(number)")])
    }
    queue.append([.reloading(at: .microseconds(1001))])
    #expect(
      sent(queue) == [
        [.ready, .status("a")],
        [.custom(name: "RESTART_RESET", value: "1"), .status("1000")],
        [.reloading(at: .microseconds(1001))],
      ])
  }

  @Test func statesStayInOrderAndOfTheRestTheNewestCounts() {
    var queue = NotifyQueue()
    queue.append([.ready, .status("a")])
    for number in 1...1000 {
      queue.append([.watchdog])
      queue.append([.status("\(number)")])
      queue.append([.extendTimeout(.seconds(number))])
      queue.append([.custom(name: "RESTART_RESET", value: "1")])
    }
    queue.append([.reloading(at: .microseconds(1)), .status("b")])
    queue.append([.ready])
    queue.append([.stopping])
    queue.append([.exitStatus(0), .status("c")])
    queue.append([.watchdog])
    #expect(
      sent(queue) == [
        [.ready, .status("a")],
        [
          .watchdog, .status("1000"), .extendTimeout(.seconds(1000)),
          .custom(name: "RESTART_RESET", value: "1"),
        ],
        [.reloading(at: .microseconds(1)), .status("b")], [.ready], [.stopping],
        [.exitStatus(0), .status("c"), .watchdog],
      ])
  }

  // MARK: The sink

  /// Nobody listens there any more, and nobody is asked again and again.
  @Test func aManagerThatIsGoneIsReportedOnce() throws {
    let notify = try NotifySocket(address: "@gone-\(getpid())-\(UInt64.random(in: 0 ... .max))")
    let log = Log()
    let sink = NotifySink(notify) { log.add($0) }
    for _ in 0..<10 { #expect(sink.receive(.healthy) == nil) }
    #expect(log.all.count == 1 && log.all[0].hasPrefix("systemd was not notified: "), "\(log.all)")
  }
}
