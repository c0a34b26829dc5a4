// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import DaemonSystemd
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// A log of one's own: what it has not taken is on standard error.
@Suite(.timeLimit(.minutes(5))) struct LogQueueTests {
  private let taken = Log()
  private let written = Log()

  private func queue(_ handler: @escaping LogQueue.Handler) -> LogQueue {
    LogQueue(write: { [written] in written.add($0.message) }, handler)
  }

  private func add(_ numbers: ClosedRange<Int>, to queue: LogQueue) {
    for number in numbers { queue.add(LifecycleLogEntry("\(number)")) }
  }

  @Test func entriesAreTakenInOrder() {
    let queue = queue { [taken] in taken.add($0.message) }
    add(1...300, to: queue)
    queue.finish()
    #expect(taken.all == (1...300).map { "\($0)" } && written.all == [])
    add(301...301, to: queue)
    queue.finish()
    #expect(taken.all.last == "301")
  }

  @Test func whatIsRefusedIsWritten() {
    let queue = queue { [taken] entry in
      if entry.message == "2" { throw TextError(text: "full") }
      taken.add(entry.message)
    }
    add(1...3, to: queue)
    queue.finish()
    #expect(taken.all == ["1", "3"] && written.all == ["2"])
  }

  /// And it goes on when the handler does. What that had was written, once.
  @Test func whatIsNotTakenInTimeIsWritten() async throws {
    let gate = Semaphore()
    let queue = queue { [taken] entry in
      if entry.message == "1" { gate.wait() }
      taken.add(entry.message)
    }
    add(1...3, to: queue)
    try await eventually { written.all == ["1", "2", "3"] }
    gate.signal()
    try await eventually { taken.all == ["1"] }
    add(4...4, to: queue)
    queue.finish()
    #expect(taken.all == ["1", "4"] && written.all == ["1", "2", "3"])
  }

  /// The process ends.
  @Test func whatIsLeftIsWritten() async throws {
    let (gate, begun) = (Semaphore(), Semaphore())
    let queue = queue { _ in
      begun.signal()
      gate.wait()
    }
    add(1...3, to: queue)
    #expect(begun.wait(for: .seconds(60)))
    queue.writeRest()
    try await eventually { written.all.sorted() == ["1", "2", "3"] }
    gate.signal()
    queue.finish()
    #expect(written.all.count == 3)
  }

  /// A handler that is too slow for all gets some.
  @Test func eachIsPassedOnOnce() async throws {
    let queue = queue { [taken] entry in
      _ = Semaphore().wait(for: .milliseconds(300))
      taken.add(entry.message)
    }
    add(1...9, to: queue)
    queue.finish()
    try await eventually { taken.all.count + written.all.count >= 9 }
    // One may have been written while the handler had it.
    let both = Set(taken.all).intersection(written.all)
    #expect(both.count <= 1 && Set(taken.all + written.all).count == 9)
  }

  /// It waits for no second then.
  @Test func whatIsTooMuchIsWrittenAtOnce() {
    let gate = Semaphore()
    let queue = queue { _ in gate.wait() }
    add(1...(LogQueue.mostWaiting + 5), to: queue)
    #expect(written.all.count >= 4)
    queue.finish()
    #expect(written.all.count == LogQueue.mostWaiting + 5)
    gate.signal()
  }

  /// It has been taken from the queue, and the handler still has an earlier one.
  @Test func whatWaitsForTheHandlerIsWrittenAtTheEnd() async throws {
    let gate = Semaphore()
    let queue = queue { _ in gate.wait() }
    add(1...1, to: queue)
    try await eventually { written.all == ["1"] }
    add(2...2, to: queue)
    queue.writeRest()
    #expect(written.all == ["1", "2"])
    queue.finish()
    #expect(written.all == ["1", "2"])
    gate.signal()
  }

  @Test func whatIsNotReadIsNotMade() {
    let made = Log()
    let entry = LifecycleLogEntry(
      .error, LifecycleMessageID.problem, made.note("text"), [("A", made.note("field"))])
    #expect(entry.priority == .error && made.all == [])
    #expect(entry.message == "text" && made.all == ["text"])
    #expect(entry.fields.map(\.name) == ["MESSAGE_ID", "A"])
    #expect(made.all == ["text", "field"])
  }

  /// A mock has it too, for a test of the handler.
  @Test func aMockPassesItsProblemsOn() async throws {
    var configuration = LifecycleConfiguration()
    configuration.interfaces.append(
      .log { [taken] entry in
        let fields = entry.fields.map { "\($0.name)=\($0.value)" }
        taken.add(([entry.message] + fields).joined(separator: " "))
      })
    let mock = MockLifecycleSubject(configuration: configuration)
    let token = mock.observe(ShouldSaveState.self, name: "orders") { _ in
      throw TextError(text: "the disk\nis full")
    }
    try await mock.send(.saveState)
    try await eventually {
      taken.all.contains { line in
        line.contains(#"the disk\nis full"#) && line.contains(" LIFECYCLE_OBSERVER=orders")
      }
    }
    token.cancel()
  }
}

extension Log {
  fileprivate func note(_ text: String) -> String {
    add(text)
    return text
  }
}
