// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import DaemonSystemd
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// The watchdog's question, and what counts as an answer.
@Suite struct HealthTests {
  /// Says what it is told to say.
  final class Patient: HealthObserver, BackgroundObserver {
    let illness = Mutex<String?>(nil)
    let checks = Atomic<Int>(0)
    let inBackground: @Sendable () async throws -> Void
    init(inBackground: @escaping @Sendable () async throws -> Void = {}) {
      self.inBackground = inBackground
    }
    func checkHealth(_ notification: CheckHealth) throws {
      checks.add(1, ordering: .relaxed)
      if let illness = illness.withLock({ $0 }) { throw TextError(text: illness) }
    }
    func didEnterBackground(_ notification: DidEnterBackground) async throws {
      try await inBackground()
    }
  }

  private func launched(_ patient: Patient) async -> ObservedCore {
    let observed = ObservedCore(LifecycleConfiguration(logging: .off))
    observed.core.add(patient)
    _ = await observed.core.launch()
    return observed
  }

  private func tick(_ observed: ObservedCore, stall: Duration = .zero) async throws {
    observed.core.receive(.watchdogTick(stall: stall))
    try await observed.core.untilIdle()
  }

  @Test func aHealthyDaemonIsPinged() async throws {
    let patient = Patient()
    let observed = await launched(patient)
    try await tick(observed)
    #expect(observed.log.names.last == "healthy")
    #expect(patient.checks.load(ordering: .relaxed) == 1)
  }

  @Test func noPingBeforeTheLaunch() async throws {
    let observed = ObservedCore()
    try await tick(observed)
    #expect(observed.log.names == [])
  }

  @Test func aFailedCheckWithholdsThePing() async throws {
    let patient = Patient()
    let observed = await launched(patient)
    patient.illness.withLock { $0 = "no feed for an hour" }
    try await tick(observed)
    #expect(observed.log.names.last?.hasPrefix("unhealthy: Patient, CheckHealth: failed") == true)
    #expect(observed.log.names.last?.hasSuffix("no feed for an hour") == true)
    patient.illness.withLock { $0 = nil }
    try await tick(observed)
    #expect(observed.log.names.last == "healthy")
  }

  @Test func aCheckThatDoesNotEndWithholdsThePing() async throws {
    let observed = await launched(Patient())
    let core = observed.core
    final class Stuck: HealthObserver {
      let core: LifecycleCore
      init(_ core: LifecycleCore) { self.core = core }
      func checkHealth(_ notification: CheckHealth) async throws {
        try await core.clockForTesting.sleep(for: .seconds(100))
      }
    }
    core.add(Stuck(core))
    try await core.untilIdle()
    core.receive(.watchdogTick(stall: .zero))
    let silence = "an observer's checkHealth does not answer"
    // The pool may be busy, but it has answered before the clock goes on.
    try await eventually { core.state.withLock { $0.machine.health.unanswered == silence } }
    await core.advance(by: .seconds(1))
    core.receive(.watchdogTick(stall: .zero))
    await core.advance(by: .milliseconds(100))
    #expect(observed.log.names.last == "unhealthy: \(silence)")
    // Its deadline is half the period.
    await core.advance(by: .seconds(1))
    try await core.untilIdle()
    #expect(observed.log.names.last?.hasPrefix("unhealthy: Stuck, CheckHealth: timed out") == true)
    #expect(!observed.log.names.contains("healthy"))
  }

  @Test func aSlowPauseIsNoIllness() async throws {
    let gate = Gate()
    let patient = Patient(inBackground: { await gate.wait() })
    let observed = await launched(patient)
    observed.core.receive(LifecycleEvent(.pause(for: .operator)))
    observed.core.receive(.watchdogTick(stall: .zero))
    try await eventually { observed.log.names.contains("healthy") }
    #expect(!observed.log.names.contains("ended background in background"))
    gate.open()
    try await observed.core.untilIdle()
  }

  @Test func whileItStopsItIsPingedUnasked() async throws {
    let gate = Gate()
    let patient = Patient(inBackground: { await gate.wait() })
    let observed = await launched(patient)
    observed.core.receive(LifecycleEvent(.terminate))
    observed.core.receive(.watchdogTick(stall: .zero))
    #expect(observed.log.names.last == "healthy")
    #expect(patient.checks.load(ordering: .relaxed) == 0)
    gate.open()
    try await observed.core.untilIdle()
  }

  @Test func aSuspendInHasteIsNoIllness() async throws {
    let patient = Patient()
    let observed = await launched(patient)
    let core = observed.core
    core.add(
      Scripted(save: { _ in
        try await core.clockForTesting.sleep(for: .seconds(100))
      }))
    try await core.untilIdle()
    core.receive(.sleepDelay(.seconds(4)))
    core.receive(LifecycleEvent(.suspend))
    // Half of the delay is kept for the save, which is under way.
    await core.advance(by: .milliseconds(2500))
    core.receive(.watchdogTick(stall: .zero))
    await core.advance(by: .milliseconds(100))
    try await eventually { !core.state.withLock { $0.machine.health.isChecking } }
    #expect(!observed.log.names.contains("ended suspend in background"))
    #expect(observed.log.names.contains("healthy"))
    #expect(!observed.log.names.contains { $0.hasPrefix("unhealthy") })
    await core.advance(by: .seconds(5))
    try await core.untilIdle()
  }

  @Test func wildcardsAndStreamsAreSparedTheQuestion() async throws {
    let patient = Patient()
    let observed = await launched(patient)
    let heard = Log()
    let id = observed.core.add(
      closures: [.wildcard { heard.add("\(type(of: $0))") }], owner: nil, .init(),
      name: .closure(file: "", line: 0))
    try await observed.core.untilIdle()
    heard.clear()
    try await tick(observed)
    #expect(heard.all == [])
    observed.core.remove(id)
  }

  /// Late by a freeze; late because others ran, or the thread itself; late by next to nothing; unknown.
  @Test(arguments: [
    (3100, 0, 1, true), (2200, 1, 1, true), (1150, 900, 200, false), (1150, 0, 1100, false),
    (20, 0, 0, false), (3100, nil as Int64?, 0, false),
  ])
  func tellsAStallFromOutsideFromABusyMachine(
    late: Int64, waited: Int64?, ran: Int64, isStall: Bool
  ) {
    let before = Schedule(ran: 5_000_000_000, waited: 7_000_000_000)
    let after = waited.map {
      Schedule(ran: before.ran + ran * 1_000_000, waited: before.waited + $0 * 1_000_000)
    }
    let stall = WatchdogSource.stall(
      late: .milliseconds(late), since: before, after, .milliseconds(250))
    #expect((stall > .zero) == isStall)
  }

  @Test(arguments: [
    ("1000 200 3", 1000, 200), ("0 0 0\n", 0, 0), ("5 6", 5, 6),
  ])
  func readsTheScheduler(text: String, ran: Int64, waited: Int64) throws {
    let schedule = try #require(Schedule(parsing: Array(text.utf8)))
    #expect(schedule.ran == ran && schedule.waited == waited)
  }

  @Test(arguments: ["", "1", "x y z", "-1 5 6", "99999999999999999999 1 1"])
  func refusesWhatTheSchedulerDoesNotWrite(text: String) {
    #expect(Schedule(parsing: Array(text.utf8)) == nil)
  }
}
