// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Many hooks, one after another: whatever the core learns meanwhile counts from the next hook on.
@Suite struct SequenceTests {
  /// Hears two notifications, and says so with its number.
  private final class Member: ForegroundObserver, BackgroundObserver {
    typealias Body = @Sendable (Int, LifecycleContext) async throws -> Void
    let number: Int
    let up: Body
    let log: Log
    init(_ number: Int, _ log: Log, _ up: @escaping Body) {
      self.number = number
      self.log = log
      self.up = up
    }
    func willEnterForeground(_ notification: WillEnterForeground) async throws {
      log.add("\(number)")
      try await up(number, notification.context)
    }
    func didEnterBackground(_ notification: DidEnterBackground) { log.add("-\(number)") }
  }

  private static let many = 300
  /// At the ends, and within.
  private static let indices = [0, 1, 2, 63, 128, many - 2, many - 1]

  private let log = Log()

  /// A mock that is in the background, and whose members call `up` in the order of their numbers.
  private func mock(
    _ count: Int, ownsMembers: Bool = true, _ up: @escaping Member.Body
  ) async throws -> (MockLifecycleSubject, [Member]) {
    let mock = MockLifecycleSubject(state: .background)
    let members = (0..<count).map { Member($0, log, up) }
    for member in members {
      if ownsMembers { mock.addObserver(member) } else { mock.addObserver(weakly: member) }
    }
    try await mock.waitUntilSettled()
    log.clear()
    return (mock, members)
  }

  private func numbers(_ range: some Sequence<Int>) -> [String] { range.map { "\($0)" } }

  /// `completed`, `busy`.
  private func outcomes(_ entries: [LifecycleReport.Entry]) -> [String] {
    entries.map { entry in
      switch entry.outcome {
      case .skipped(let reason): "\(reason)"
      case .abandoned(let progress): "\(progress)"
      default: "\(entry.outcome)"
      }
    }
  }

  // MARK: In order

  /// Though the core is busy with something else in the midst of it, from a hook and from a thread of its own.
  @Test func aLongSequenceIsHeardInOrderAndReportedWhole() async throws {
    let core = Mutex<LifecycleCore?>(nil)
    let (mock, _) = try await mock(Self.many) { number, context in
      #expect(context.isCurrent)
      #expect(context.timeRemaining == .seconds(10))
      if number % 7 == 0 { core.withLock { $0 }?.change { _, _ in } }
    }
    core.withLock { $0 = mock.core }
    defer { core.withLock { $0 = nil } }
    let isOver = Atomic<Bool>(false)
    let looking = Task.detached { [core = mock.core] in
      while !isOver.load(ordering: .relaxed) {
        core.change { _, _ in }
        await Task.yield()
      }
    }
    for _ in 0..<20 {
      let up = try await mock.send(.sigusr2)
      #expect(outcomes(up.entries) == Array(repeating: "completed", count: Self.many))
      #expect(log.all == numbers(0..<Self.many))
      log.clear()
      let down = try await mock.send(.sigusr1)
      #expect(outcomes(down.entries) == Array(repeating: "completed", count: Self.many))
      // All have been told of the foreground, and so all hear of its end.
      #expect(log.all == (0..<Self.many).reversed().map { "-\($0)" })
      log.clear()
    }
    isOver.store(true, ordering: .relaxed)
    await looking.value
    #expect(mock.core.state.withLock { $0.machine.calls.count } == 0)
  }

  // MARK: Who comes and goes

  @Test(arguments: indices) func removedInTheMidst(index: Int) async throws {
    let all = Mutex<[Member]>([])
    let subject = Mutex<MockLifecycleSubject?>(nil)
    // Itself, one that has heard already, the next, and the last but one.
    let removed = Set(
      [index - 1, index, index + 1, Self.many - 2].filter { (0..<Self.many) ~= $0 })
    let (mock, members) = try await mock(Self.many) { number, _ in
      guard number == index, let subject = subject.withLock({ $0 }) else { return }
      let members = all.withLock { $0 }
      for number in removed { subject.removeObserver(members[number]) }
    }
    all.withLock { $0 = members }
    subject.withLock { $0 = mock }
    defer { subject.withLock { $0 = nil } }
    let report = try await mock.send(.sigusr2)
    let heard = (0..<Self.many).filter { $0 <= index || !removed.contains($0) }
    #expect(log.all == numbers(heard))
    #expect(outcomes(report.entries) == heard.map { _ in "completed" })
    log.clear()
    try await mock.send(.sigusr1)
    #expect(log.all.count == Self.many - removed.count)
    #expect(mock.core.state.withLock { $0.machine.calls.count } == 0)
  }

  @Test(arguments: indices) func vanishedInTheMidst(index: Int) async throws {
    let owned = Mutex<[Member]>([])
    let (mock, members) = try await mock(Self.many, ownsMembers: false) { number, _ in
      guard number == 0 else { return }
      owned.withLock { if index > 0, !$0.isEmpty { $0[index] = $0[0] } }
    }
    owned.withLock { $0 = members }
    func drop(_: consuming [Member]) {}
    drop(members)
    if index == 0 { owned.withLock { $0[0] = $0[1] } }
    _ = consume members
    let report = try await mock.send(.sigusr2)
    #expect(log.all == numbers((0..<Self.many).filter { $0 != index }))
    #expect(report.entries.count == Self.many - 1 && report.problems.isEmpty)
    #expect(try await mock.send(.sigusr1).problems.isEmpty)
    owned.withLock { $0 = [] }
  }

  // MARK: Termination

  @Test(arguments: indices) func aTerminationOvertakesAtAnyIndex(index: Int) async throws {
    let subject = Mutex<MockLifecycleSubject?>(nil)
    let (mock, _) = try await mock(Self.many) { number, _ in
      if number == index { subject.withLock { $0 }?.inject(.sigterm) }
    }
    subject.withLock { $0 = mock }
    defer { subject.withLock { $0 = nil } }
    try await mock.send(.sigusr2)
    try await mock.waitUntilSettled()
    // Who was told of the foreground is told of its end, and nobody else.
    #expect(log.all == numbers(0...index) + (0...index).reversed().map { "-\($0)" })
    let entries = mock.reports.first { !$0.entries.isEmpty && $0.entries.count == Self.many }?
      .entries
    let expected = (0..<Self.many).map { $0 <= index ? "completed" : "overtaken" }
    #expect(outcomes(entries ?? []) == expected)
    #expect(mock.core.state.withLock { $0.machine.calls.count } == 0)
  }

  // MARK: Deadlines

  /// Each hook has its own time. The timer alone must do, since nothing else calls the core between two hooks.
  @Test(.timeLimit(.minutes(5))) func aLaterHookIsCancelledByTheTimer() async throws {
    let core = LifecycleCore(
      configuration: LifecycleConfiguration(
        signals: [:], hookTimeout: .milliseconds(30), cancellationGrace: .seconds(50),
        exitGrace: nil, logging: .off))
    let members = (0..<200).map { number in
      Member(number, log) { number, _ in
        if number == 150 { while !Task.isCancelled { await Task.yield() } }
      }
    }
    for member in members { core.add(member) }
    var reports = core.stream(of: LifecycleReport.self, bufferingNewest: 64)
      .makeAsyncIterator()
    core.launch { true }
    let report = try #require(await reports.next())
    #expect(Array(log.all.prefix(200)) == numbers(0..<200))
    #expect(outcomes([report.entries[150]]) == ["timedOut"])
    core.close()
  }
}
