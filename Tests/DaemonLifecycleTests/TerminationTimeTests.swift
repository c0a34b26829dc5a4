// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import TestSupport
import Testing

@testable import DaemonLifecycle

/// The budget of a termination, on the mock's clock.
@Suite struct TerminationTimeTests {
  let log = Log()

  private func outcomes(_ report: LifecycleReport) -> [String] {
    report.entries.map { entry in
      let what = entry.notification.map { "\($0)" } ?? "body"
      return "\(what) \(entry.outcome)"
    }
  }

  private func configuration(budget: Duration, reserve: Duration) -> LifecycleConfiguration {
    LifecycleConfiguration(
      hookDeadline: .seconds(30), stopTimeout: budget, saveReserve: reserve, exitGrace: nil,
      logging: .off)
  }

  private static let everySignalCounts = LifecycleConfiguration(
    escalationDelay: .zero, logging: .off)

  @Test func theSaveReserveIsKept() async throws {
    let mock = MockLifecycleSubject(
      configuration: configuration(budget: .seconds(20), reserve: .seconds(8)))
    let gate = Gate()
    let stuck = (0..<3).map { _ in Scripted(background: { _ in await gate.wait() }) }
    let saver = Listener("saver", log)
    mock.addObserver(saver)
    for observer in stuck { mock.addObserver(observer) }
    try await mock.settled()
    log.clear()
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(12))
    let report = try await mock.settled()
    #expect(log.all.contains("saver save"))
    #expect(outcomes(report).filter { $0.contains("outOfTime") }.count == 3, "\(report)")
    #expect(mock.exit?.code == 124)
    gate.open()
  }

  @Test func aStuckSaverDoesNotTakeTheOthersChance() async throws {
    let mock = MockLifecycleSubject(
      configuration: configuration(budget: .seconds(10), reserve: .seconds(5)))
    let gate = Gate()
    let saver = Listener("saver", log)
    let stuck = Scripted(save: { _ in await gate.wait() })
    mock.addObserver(saver)
    mock.addObserver(stuck)
    try await mock.settled()
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(9))
    try await mock.settled()
    #expect(log.all.contains("saver save"))
    #expect(mock.state == .terminated)
    gate.open()
  }

  @Test func aSecondSignalLeavesTheSaveReserveOnly() async throws {
    let mock = MockLifecycleSubject(configuration: Self.everySignalCounts)
    let gate = Gate()
    let first = Listener("first", log)
    let stuck = Scripted(background: { _ in await gate.wait() })
    mock.addObserver(first)
    mock.addObserver(stuck)
    try await mock.settled()
    log.clear()
    mock.inject(.sigterm)
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(1))
    let report = try await mock.settled()
    #expect(log.all == ["first save", "first terminate"])
    #expect(
      outcomes(report).contains {
        $0.contains("DidEnterBackground skipped") && $0.contains("outOfTime")
      })
    #expect(mock.exit?.code == 124)
    gate.open()
  }

  /// It kept the grace of the time before the stop, and ended that much after the budget.
  @Test func moreTimeForAHookIsNoneForTheStop() async throws {
    let mock = MockLifecycleSubject(
      configuration: configuration(budget: .seconds(4), reserve: .zero))
    let gate = Gate()
    let stuck = Scripted(save: { [unowned mock] notification in
      try await mock.clock.sleep(for: .milliseconds(2900))
      notification.context.extendDeadline(by: .seconds(60))
      await gate.wait()
    })
    mock.addObserver(stuck)
    try await mock.settled()
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(4))
    #expect(mock.exit?.code == 124)
    gate.open()
    try await mock.settled()
  }

  @Test func noHookIsCalledWithLessThanAMillisecondLeft() async throws {
    let mock = MockLifecycleSubject(
      configuration: configuration(budget: .seconds(4), reserve: .zero))
    let gate = Gate()
    let late = Listener("late", log)
    let slow = Scripted(background: { _ in await gate.wait() })
    mock.addObserver(late)
    mock.addObserver(slow)
    try await mock.settled()
    log.clear()
    mock.inject(.sigterm)
    await mock.advance(by: .microseconds(3_999_500))
    gate.open()
    let report = try await mock.settled()
    #expect(log.all.isEmpty)
    #expect(outcomes(report).count { $0.contains("outOfTime") } >= 3, "\(report)")
  }

  @Test func aThirdSignalExitsAtOnce() async throws {
    let mock = MockLifecycleSubject(configuration: Self.everySignalCounts)
    let gate = Gate()
    let stuck = Scripted(background: { _ in await gate.wait() })
    mock.addObserver(stuck)
    try await mock.settled()
    mock.inject(.sigterm)
    mock.inject(.sigint)
    #expect(mock.immediateExitCode == nil)
    mock.inject(.sigint)
    #expect(mock.immediateExitCode == 130)
    #expect(mock.exit?.code == 130)
    #expect(mock.state == .terminated)
    gate.open()
  }

  @Test func callsDoNotEscalate() async throws {
    let mock = MockLifecycleSubject()
    let saver = Listener("saver", log)
    mock.addObserver(saver)
    try await mock.settled()
    log.clear()
    for _ in 0..<5 { mock.terminate() }
    try await mock.send(.sigterm)  // the first signal
    #expect(log.all == ["saver background", "saver save", "saver terminate"])
    #expect(mock.exit?.code == 0)
  }

  @Test func aTerminationOvertakesAReload() async throws {
    let mock = MockLifecycleSubject()
    let (began, ends) = (Gate(), Gate())
    let log = log
    let never = mock.observe(ShouldReload.self, phase: LifecyclePhase(order: 1)) { _ in
      log.add("never")
    }
    let slow = mock.observe(ShouldReload.self) { _ in
      began.open()
      await ends.wait()
    }
    mock.inject(.sighup)
    await began.wait()
    mock.inject(.sigterm)
    ends.open()
    let report = try await mock.settled()
    #expect(log.all.isEmpty)
    #expect(outcomes(report).filter { $0.contains("overtaken") }.count == 1)
    #expect(mock.exit?.code == 0)
    #expect(mock.exit?.report.problems.isEmpty == true)
    withExtendedLifetime((never, slow)) {}
  }
}
