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
    let stuck = (0..<3).map { _ in Scripted(background: gate.hold) }
    mock.addObserver(Listener("saver", log))
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
    mock.addObserver(Listener("saver", log))
    mock.script(save: gate.hold)
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
    mock.addObserver(Listener("first", log))
    mock.script(background: gate.hold)
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
    mock.script(save: { [unowned mock] notification in
      try await mock.clock.sleep(for: .milliseconds(2900))
      notification.context.extendDeadline(by: .seconds(60))
      await gate.wait()
    })
    try await mock.settled()
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(4))
    #expect(mock.exit?.code == 124)
    gate.open()
    try await mock.settled()
  }

  @Test func aThirdSignalExitsAtOnce() async throws {
    let mock = MockLifecycleSubject(configuration: Self.everySignalCounts)
    let gate = Gate()
    mock.script(background: gate.hold)
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
}
