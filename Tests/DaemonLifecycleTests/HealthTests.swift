// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import DaemonSystemd
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// The watchdog's question, and what counts as an answer.
@Suite struct HealthTests {
  private func launched() async -> ObservedCore {
    let observed = ObservedCore(LifecycleConfiguration(logging: .off))
    _ = await observed.core.launch()
    return observed
  }

  @Test func noPingBeforeTheLaunch() async throws {
    let observed = ObservedCore()
    observed.core.take(.watchdogTick(stall: .zero))
    try await observed.core.untilIdle()
    #expect(observed.log.names == [])
  }

  @Test func aFailedCheckWithholdsThePing() async throws {
    let (observed, illness) = (await launched(), Log())
    observed.on(CheckHealth.self) { _ in
      if let text = illness.all.last { throw TextError(text: text) }
    }
    for (text, verdict) in [("no feed for an hour", "unhealthy: closure"), (nil, "healthy")] {
      if let text { illness.add(text) } else { illness.clear() }
      observed.core.take(.watchdogTick(stall: .zero))
      try await observed.core.untilIdle()
      let last = observed.log.names.last ?? ""
      #expect(last.hasPrefix(verdict) && last.hasSuffix(text ?? ""), "\(last)")
    }
  }

  /// Reading it begins the next check, at most every five seconds.
  @Test func aProbeLearnsTheResultOfTheLastCheck() async throws {
    let (mock, illness, asked) = (MockLifecycleSubject(), Log(), Log())
    let token = mock.observe(CheckHealth.self) { _ in
      asked.add("asked")
      if let text = illness.all.last { throw TextError(text: text) }
      if asked.all.count == 3 { try await mock.clock.sleep(for: .seconds(1000)) }
    }
    // Not before the launch.
    #expect(mock.isHealthy && asked.all.isEmpty)
    try await mock.waitUntilInForeground()
    illness.add("no feed for an hour")
    #expect(mock.isHealthy)
    try await eventually { !mock.isHealthy }
    illness.clear()
    #expect(asked.all.count == 1)
    await mock.advance(by: .seconds(5))
    try await eventually { mock.isHealthy }
    #expect(asked.all.count == 2)
    await mock.advance(by: .seconds(5))
    #expect(mock.isHealthy)
    // Its deadline is that of a hook.
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(12))
    try await eventually { !mock.isHealthy }
    mock.inject(.terminate)
    #expect(mock.isHealthy)
    try await mock.waitUntilSettled()
    token.cancel()
  }

  /// It has had no time to be answered.
  @Test func aTickDuringAProbesCheckSaysNothing() async throws {
    let (observed, gate) = (await launched(), Gate())
    observed.on(CheckHealth.self, gate.hold)
    #expect(observed.core.isHealthy)
    observed.core.take(.watchdogTick(stall: .zero))
    #expect(!observed.log.names.contains { $0.hasPrefix("unhealthy") })
    gate.open()
    try await observed.core.untilIdle()
    try await eventually { observed.log.names.last == "healthy" }
  }

  @Test func aCheckThatDoesNotEndWithholdsThePing() async throws {
    let observed = await launched()
    let core = observed.core
    observed.on(CheckHealth.self) { _ in
      try await core.clockForTesting.sleep(for: .seconds(100))
    }
    core.take(.watchdogTick(stall: .zero))
    let silence = "an observer's checkHealth does not answer"
    try await eventually { core.state.withLock { $0.machine.health.unanswered == silence } }
    await core.advance(by: .seconds(1))
    core.take(.watchdogTick(stall: .zero))
    await core.advance(by: .milliseconds(100))
    #expect(observed.log.names.last == "unhealthy: \(silence)")
    // Its deadline is half the period.
    await core.advance(by: .seconds(1))
    try await core.untilIdle()
    #expect(observed.log.names.last?.contains("CheckHealth: timed out") == true)
    #expect(!observed.log.names.contains("healthy"))
  }

  @Test func whileItStopsItIsPingedUnasked() async throws {
    let (observed, gate) = (await launched(), Gate())
    observed.on(DidEnterBackground.self, gate.hold)
    observed.on(CheckHealth.self) { _ in Issue.record("a stop is not asked") }
    observed.core.receive(LifecycleEvent(.terminate))
    observed.core.take(.watchdogTick(stall: .zero))
    #expect(observed.log.names.last == "healthy")
    gate.open()
    try await observed.core.untilIdle()
  }

  /// A check has its own time beside a suspend, of whose delay half is kept for the save that is under way.
  @Test func aSuspendInHasteIsNoIllness() async throws {
    let observed = await launched()
    let core = observed.core
    observed.on(CheckHealth.self) { _ in }
    observed.on(ShouldSaveState.self) { _ in
      try await core.clockForTesting.sleep(for: .seconds(100))
    }
    core.take(.systemd(.sleepDelay(.seconds(4))))
    core.receive(LifecycleEvent(.sleep))
    await core.advance(by: .milliseconds(2500))
    core.take(.watchdogTick(stall: .zero))
    await core.advance(by: .milliseconds(100))
    try await eventually { !core.state.withLock { $0.machine.health.isChecking } }
    #expect(!observed.log.names.contains("ended sleep in background"))
    #expect(observed.log.names.contains("healthy"))
    #expect(!observed.log.names.contains { $0.hasPrefix("unhealthy") })
    await core.advance(by: .seconds(5))
    try await core.untilIdle()
  }

  /// Late by a freeze; late because others ran, or the thread itself; late by next to nothing; unknown.
  @Test(arguments: [
    (3100, 0, 1, true), (2200, 1, 1, true), (1150, 900, 200, false), (1150, 0, 1100, false),
    (20, 0, 0, false), (3100, nil as Int64?, 0, false),
  ])
  func tellsAStallFromOutsideFromABusyMachine(
    late: Int64, waited: Int64?, ran: Int64, isStall: Bool
  ) {
    let before: Int64 = 12_000_000_000
    let after = waited.map { before + (ran + $0) * 1_000_000 }
    let stall = WatchdogSource.stall(
      late: .milliseconds(late), since: before, after, .milliseconds(250))
    #expect((stall > .zero) == isStall)
  }

  @Test(arguments: [
    ("1000 200 3", 1200), ("0 0 0\n", 0), ("5 6", 11),
  ])
  func readsTheScheduler(text: String, busyTime: Int64) {
    #expect(WatchdogSource.busyTime(in: Array(text.utf8)) == busyTime)
  }

  @Test(arguments: ["", "1", "x y z", "-1 5 6", "99999999999999999999 1 1"])
  func refusesWhatTheSchedulerDoesNotWrite(text: String) {
    #expect(WatchdogSource.busyTime(in: Array(text.utf8)) == nil)
  }
}
