// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import DaemonSystemd
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Keeps what a core tells.
final class FactLog: LifecycleSink {
  private let facts = Mutex<[LifecycleFact]>([])
  let isServiceManager: Bool
  init(isServiceManager: Bool = true) { self.isServiceManager = isServiceManager }
  func receive(_ fact: LifecycleFact) -> MonotonicTime? {
    facts.withLock { $0.append(fact) }
    return nil
  }
  var all: [LifecycleFact] { facts.withLock { $0 } }

  /// The facts by name.
  var names: [String] {
    all.map { fact in
      switch fact {
      case .began(let transition, _, _): "began \(transition.row.event)"
      case .progress(let progress): progress.description
      case .ended(let transition, _, _, let snapshot):
        "ended \(transition.row.event) in \(snapshot.state)"
      case .launched: "launched"
      case .draining(_, let delay): "draining \(delay.forReading)"
      case .terminating: "terminating"
      case .unmappedReload: "unmapped reload"
      case .extended(let duration): "extended \(duration.forReading)"
      case .healthy: "healthy"
      case .unhealthy(let reason): "unhealthy: \(reason)"
      case .reasonsChanged(_, let snapshot): "reasons \(snapshot.reasons.map(\.name))"
      case .statusNote(_, let text): "statusNote \(text ?? "none")"
      case .problems: "problems"
      case .readyToSleep: "ready to sleep"
      case .closed: "closed"
      case .warning(let text): "warning \(text)"
      case .info(let text): "info: \(text)"
      case .recovered: "recovered"
      case .terminated(let exit): "terminated \(exit.code)"
      }
    }
  }
}

/// A core on a virtual clock with a sink.
struct ObservedCore {
  let log: FactLog
  let core: LifecycleCore
  let time = VirtualTime()

  init(
    _ configuration: LifecycleConfiguration = LifecycleConfiguration(),
    isServiceManager: Bool = true, watchdogPeriod: Duration? = .seconds(4)
  ) {
    log = FactLog(isServiceManager: isServiceManager)
    core = LifecycleCore(
      configuration: configuration, time: .virtual(time), sinks: [log],
      watchdogPeriod: watchdogPeriod, exitProcess: { _ in })
  }

  func send(_ kind: LifecycleRequest) async throws {
    core.receive(LifecycleEvent(kind))
    try await core.untilIdle()
  }
}

/// What a core tells systemd and the journal, and what it learns from them.
@Suite struct SinkTests {
  @Test func aLifeInFacts() async throws {
    let observed = ObservedCore()
    _ = await observed.core.launch()
    try await observed.send(.pause(for: .operator))
    try await observed.send(.reload)
    try await observed.send(.terminate)
    #expect(
      observed.log.names == [
        "began launch", "ended launch in foreground", "launched",
        "began background", "ended background in background",
        "began reload", "ended reload in background",
        "terminating", "extended 91 s", "began terminate", "ended terminate in terminated",
        "terminated 0",
      ])
  }

  /// No hook has anything to do then, but an operator reads why the daemon pauses.
  @Test func anotherReasonForTheBackgroundIsTold() async throws {
    let observed = ObservedCore()
    _ = await observed.core.launch()
    for _ in 0..<2 { try await observed.send(.pause(for: .operator)) }
    try await observed.send(.pause(for: .session))
    try await observed.send(.resume(for: .operator))
    try await observed.send(.resume(for: .session))
    #expect(
      observed.log.names.dropFirst(3) == [
        "began background", "ended background in background",
        "reasons [\"operator\", \"session\"]", "reasons [\"session\"]",
        "began foreground", "ended foreground in foreground",
      ])
  }

  @Test func aFailedLaunchIsNeverReady() async throws {
    let observed = ObservedCore(LifecycleConfiguration(logging: .off))
    let token = observe(observed.core, DidFinishLaunching.self) { _ in throw Failure() }
    _ = await observed.core.launch()
    try await observed.core.untilIdle()
    #expect(!observed.log.names.contains("launched"))
    #expect(observed.log.names.last == "terminated 70")
    token.cancel()
  }

  @Test func aTerminationDuringTheLaunchIsNeverReady() async throws {
    let observed = ObservedCore()
    let core = observed.core
    let token = observe(core, DidFinishLaunching.self) { _ in
      core.receive(LifecycleEvent(.terminate))
    }
    _ = await core.launch()
    try await core.untilIdle()
    #expect(!observed.log.names.contains("launched"))
    token.cancel()
  }

  @Test func aReloadOvertakenByTheEndIsToldAfterIt() async throws {
    let observed = ObservedCore()
    let core = observed.core
    _ = await core.launch()
    let token = observe(core, ShouldReload.self) { _ in core.receive(LifecycleEvent(.terminate)) }
    try await observed.send(.reload)
    let names = observed.log.names
    let terminating = names.firstIndex(of: "terminating")
    let ended = names.firstIndex { $0.hasPrefix("ended reload") }
    #expect(terminating != nil && ended != nil && terminating! < ended!)
    token.cancel()
  }

  @Test func slowTransitionsTellHowFarTheyAre() async throws {
    let observed = ObservedCore()
    let core = observed.core
    _ = await core.launch()
    let slow = Scripted(background: { _ in
      try await core.clockForTesting.sleep(for: .milliseconds(1500))
    })
    let quick = Scripted()
    core.add(slow, .init(phase: LifecyclePhase(order: 1)))
    core.add(quick, .init(phase: LifecyclePhase(order: 0)))
    try await core.untilIdle()
    core.receive(LifecycleEvent(.terminate))
    await core.advance(by: .seconds(5))
    try await core.untilIdle()
    // Both pause, both save, both hear of the end.
    #expect(
      observed.log.names.filter { $0.hasPrefix("stopping") }
        == ["stopping: 0 of 6 done, waiting for Scripted, 1 s"])
  }

  @Test func moreTimeIsAskedForWhereSystemdWaits() async throws {
    let observed = ObservedCore(
      LifecycleConfiguration(hookDeadline: .seconds(10), stopTimeout: .seconds(20), exitGrace: nil))
    let core = observed.core
    _ = await core.launch()
    let long = Scripted(background: { notification in
      notification.context.extendDeadline(by: .seconds(60))
      try await core.clockForTesting.sleep(for: .seconds(50))
    })
    core.add(long)
    try await core.untilIdle()
    core.receive(LifecycleEvent(.terminate))
    await core.advance(by: .seconds(100))
    try await core.untilIdle()
    // 20 s of budget, since nothing has said what systemd allows; 60 s more; and a second of margin.
    // systemd forgets it at a daemon-reload, so it is said each second.
    let asked = observed.log.names.filter { $0.hasPrefix("extended") }
    #expect(asked.prefix(3) == ["extended 21 s", "extended 81 s", "extended 80 s"])
    #expect(asked.count >= 50)
    #expect(observed.log.names.last == "terminated 0")
  }

  @Test func withoutAServiceManagerTheBudgetIsTheLimit() async throws {
    let observed = ObservedCore(
      LifecycleConfiguration(
        hookDeadline: .seconds(10), stopTimeout: .seconds(20), exitGrace: nil, logging: .off),
      isServiceManager: false)
    let core = observed.core
    _ = await core.launch()
    let long = Scripted(background: { notification in
      notification.context.extendDeadline(by: .seconds(60))
      try await core.clockForTesting.sleep(for: .seconds(50))
    })
    core.add(long)
    try await core.untilIdle()
    core.receive(LifecycleEvent(.terminate))
    await core.advance(by: .seconds(100))
    try await core.untilIdle()
    #expect(observed.log.names.last == "terminated 124")
  }

  @Test func anExtensionAtOtherTimesIsNotTold() async throws {
    let observed = ObservedCore()
    let core = observed.core
    _ = await core.launch()
    let long = Scripted(background: { $0.context.extendDeadline(by: .seconds(60)) })
    core.add(long)
    try await observed.send(.pause(for: .operator))
    #expect(!observed.log.names.contains { $0.hasPrefix("extended") })
  }

  @Test(arguments: [
    (nil as Duration?, nil as Duration?, 90.0), (nil, .seconds(2), 1.8), (nil, .seconds(60), 59.0),
    (.seconds(5), .seconds(60), 5.0), (.seconds(60), .seconds(10), 9.0), (.seconds(7), nil, 7.0),
  ])
  func theStopBudgetIsWhatIsAllowed(configured: Duration?, allowed: Duration?, seconds: Double) {
    let configuration = LifecycleConfiguration(stopTimeout: configured, exitGrace: nil)
    let start = MonotonicTime(nanoseconds: 0)
    let budget = StopBudget(configuration, allowed: allowed, from: start)
    #expect(start.duration(to: budget.end) == .seconds(seconds))
  }

  /// The process's own end gets no more than the hooks.
  @Test func aShortStopLeavesTheHooksTime() {
    let start = MonotonicTime(nanoseconds: 0)
    let budget = StopBudget(LifecycleConfiguration(), allowed: .seconds(1), from: start)
    #expect(start.duration(to: budget.end) == .seconds(0.45))
    #expect(budget.exitGrace == .seconds(0.45))
  }

  @Test func anInfiniteStopIsNoTrap() {
    let start = MonotonicTime.now()
    let budget = StopBudget(
      LifecycleConfiguration(), allowed: .seconds(Int64.max), from: start)
    #expect(budget.share(of: .kind(.shouldSaveState), among: 3, at: start) > .seconds(1_000_000))
  }

  @Test func theMachineMaySleepOnceAllIsDone() async throws {
    let observed = ObservedCore()
    _ = await observed.core.launch()
    try await observed.send(.suspend)
    let names = observed.log.names.suffix(3)
    #expect(
      Array(names) == ["began suspend", "ended suspend in background", "ready to sleep"])
  }

  @Test func aStopInASuspendKeepsTheMachineAwakeUntilItsEnd() async throws {
    let observed = ObservedCore()
    let core = observed.core
    _ = await core.launch()
    let token = observe(core, WillSuspend.self) { _ in core.receive(LifecycleEvent(.terminate)) }
    try await observed.send(.suspend)
    let names = observed.log.names
    #expect(names.suffix(2) == ["terminated 0", "ready to sleep"])
    token.cancel()
  }

  @Test func aReasonThatChangesMeanwhileIsToldAsItsOwn() async throws {
    let observed = ObservedCore()
    let core = observed.core
    _ = await core.launch()
    try await observed.send(.pause(for: .operator))
    let gate = Gate()
    let token = observe(core, ShouldReload.self) { _ in await gate.wait() }
    core.receive(LifecycleEvent(.reload))
    core.receive(
      LifecycleEvent(
        .pause(for: BackgroundReason("db.service")),
        cause: LifecycleCause(.bus("db.service is failed"))))
    #expect(observed.log.names.last == #"reasons ["db.service", "operator"]"#)
    gate.open()
    try await core.untilIdle()
    token.cancel()
  }

  @Test func aSubjectThatGoesAwayIsTold() async {
    let observed = ObservedCore()
    _ = await observed.core.launch()
    observed.core.close()
    #expect(observed.log.names.last == "closed")
  }

  @Test func onlyOneSubjectSpeaksWithSystemd() {
    var first = ServiceManagerLease.take()
    #expect(first != nil)
    #expect(ServiceManagerLease.take() == nil)
    withExtendedLifetime(first) {}
    first = nil
    #expect(ServiceManagerLease.take() != nil)
  }

  private func observe<N: LifecycleNotification>(
    _ core: LifecycleCore, _ type: N.Type, _ body: @escaping @Sendable (N) async throws -> Void
  ) -> ObservationToken {
    let id = core.add(
      closures: [.closure(for: type, body)], owner: nil, .init(),
      name: .closure(file: "SinkTests.swift", line: 0))
    return ObservationToken { core.remove(id) }
  }
}

extension LifecycleCore {
  var clockForTesting: LifecycleClock { LifecycleClock(keeper: self) }
}
