// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import DaemonSystemd
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Keeps what a core tells.
final class FactLog: LifecyclePart {
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
      case .ended(let transition, _, _, let snapshot):
        "ended \(transition.row.event) in \(snapshot.state)"
      case .launched: "launched"
      case .draining(_, let delay): "draining \(delay.forReading)"
      case .terminating: "terminating"
      case .extended(let duration): "extended \(duration.forReading)"
      case .healthy: "healthy"
      case .unhealthy(let reason): "unhealthy: \(reason)"
      case .positionChanged(_, let snapshot): "reasons \(snapshot.reasons)"
      case .readyToSleep: "ready to sleep"
      case .closed: "closed"
      case .settingUp(let time): "setting up for \(time.forReading)"
      case .warning(let text): "warning \(text)"
      case .terminated(let exit): "terminated \(exit.exitStatus)"
      default: "another"
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
      configuration: configuration, virtualTime: time, harness: Harness(), parts: [log],
      watchdogPeriod: watchdogPeriod, exitProcess: { _ in })
  }

  /// Calls the body for each notification of the type, for as long as the core lives.
  func on<N: LifecycleNotification>(
    _ type: N.Type, _ body: @escaping @Sendable (N) async throws -> Void
  ) {
    _ = core.add(
      closures: [.closure(for: type, body)], owner: nil, .init(),
      name: .closure(file: "Tests.swift", line: 1))
  }

  func send(_ kind: LifecycleRequest) async throws {
    core.receive(LifecycleEvent(kind))
    try await core.untilIdle()
  }
}

/// What a core tells systemd and the journal, and what it learns from them.
@Suite struct SinkTests {
  /// A trace may wait for a lock that a hook holds: hooks lose no thread to it.
  @Test func oneTraceAtATimeAndOnNoThreadOfTheHooks() throws {
    let begun = Mutex(0)
    let gate = Semaphore()
    var configuration = LifecycleConfiguration()
    configuration.interfaces.append(
      LifecycleInterface(
        "traces",
        .traces {
          begun.withLock { $0 += 1 }
          gate.wait()
          return ["it waits"]
        }))
    let observed = ObservedCore(configuration)
    func count(_ text: String) -> Int {
      observed.log.all.count { if case .info("Described: \(text).") = $0 { true } else { false } }
    }
    func describe() { observed.core.receive(LifecycleEvent(.describe)) }
    for _ in 0..<200 { describe() }
    #expect(count("a trace is under way") == 199)
    try eventually("it has begun") { begun.withLock { $0 == 1 } }
    #expect(observed.core.executor.isQuiet)
    gate.signal()
    try eventually("it is logged") { count("it waits") == 1 }
    try eventually("the next one begins") {
      describe()
      return begun.withLock { $0 == 2 }
    }
    gate.signal()
    try eventually("the next one is logged") { count("it waits") == 2 }
  }

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
    try await observed.send(.pause(for: BackgroundReason("session")))
    try await observed.send(.resume(for: .operator))
    try await observed.send(.resume(for: BackgroundReason("session")))
    #expect(
      observed.log.names.dropFirst(3) == [
        "began background", "ended background in background",
        "reasons [\"operator\", \"session\"]", "reasons [\"session\"]",
        "began foreground", "ended foreground in foreground",
      ])
  }

  /// Also while a transition is under way.
  @Test func aReasonThatChangesMeanwhileIsToldAsItsOwn() async throws {
    let (observed, gate) = (ObservedCore(), Gate())
    _ = await observed.core.launch()
    try await observed.send(.pause(for: .operator))
    observed.on(ShouldReload.self, gate.hold)
    observed.core.receive(LifecycleEvent(.reload))
    observed.core.receive(LifecycleEvent(.pause(for: BackgroundReason("db.service"))))
    #expect(observed.log.names.last == #"reasons ["db.service", "operator"]"#)
    gate.open()
    try await observed.core.untilIdle()
  }

  @Test func aTerminationDuringTheLaunchIsNeverReady() async throws {
    let observed = ObservedCore()
    let core = observed.core
    observed.on(DidFinishLaunching.self) { _ in core.receive(LifecycleEvent(.terminate)) }
    _ = await core.launch()
    try await core.untilIdle()
    #expect(!observed.log.names.contains("launched"))
  }

  @Test func aReloadOvertakenByTheEndIsToldAfterIt() async throws {
    let observed = ObservedCore()
    let core = observed.core
    _ = await core.launch()
    observed.on(ShouldReload.self) { _ in core.receive(LifecycleEvent(.terminate)) }
    try await observed.send(.reload)
    let names = observed.log.names
    let terminating = names.firstIndex(of: "terminating")
    let ended = names.firstIndex { $0.hasPrefix("ended reload") }
    #expect(terminating != nil && ended != nil && terminating! < ended!)
  }

  @Test func moreTimeIsAskedForWhereSystemdWaits() async throws {
    let observed = ObservedCore(
      LifecycleConfiguration(hookTimeout: .seconds(10), stopTimeout: .seconds(20), exitGrace: nil))
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
    // systemd forgets it at a daemon-reload, so it is said again within each.
    let asked = observed.log.names.filter { $0.hasPrefix("extended") }
    #expect(asked.prefix(3) == ["extended 21 s", "extended 81 s", "extended 80.9 s"])
    #expect(observed.log.names.contains("terminated 0"))
    #expect(
      (800...820).contains(asked.count) && asked.last == "extended 100 ms",
      "until the process must have ended")
  }

  @Test func anExtensionAtOtherTimesIsNotTold() async throws {
    let observed = ObservedCore()
    _ = await observed.core.launch()
    observed.on(DidEnterBackground.self) { $0.context.extendDeadline(by: .seconds(60)) }
    try await observed.send(.pause(for: .operator))
    #expect(!observed.log.names.contains { $0.hasPrefix("extended") })
  }

  /// The process's own end gets no more than the hooks.
  @Test(
    arguments: [
      (nil, nil, nil, 90), (nil, 2, nil, 1.8), (nil, 60, nil, 59), (5, 60, nil, 5),
      (60, 10, nil, 9), (7, nil, nil, 7), (nil, 1, 2, 0.45),
    ] as [(Int?, Int?, Int?, Double)])
  func theStopBudgetIsWhatIsAllowed(
    configured: Int?, allowed: Int?, grace: Int?, seconds: Double
  ) {
    let configuration = LifecycleConfiguration(
      stopTimeout: configured.map { .seconds($0) }, exitGrace: grace.map { .seconds($0) })
    let start = MonotonicTime(nanoseconds: 0)
    let budget = StopBudget(
      .init(configuration: configuration), allowed: allowed.map { .seconds($0) }, from: start)
    #expect(start.duration(to: budget.end) == .seconds(seconds))
  }

  @Test func anInfiniteStopIsNoTrap() {
    let start = MonotonicTime.now()
    let budget = StopBudget(
      .init(configuration: .init()), allowed: .seconds(Int64.max), from: start)
    #expect(start.duration(to: budget.end) > .seconds(1_000_000))
  }

  @Test func theMachineMaySleepOnceAllIsDone() async throws {
    let observed = ObservedCore()
    _ = await observed.core.launch()
    try await observed.send(.sleep)
    #expect(
      observed.log.names.suffix(3)
        == ["began sleep", "ended sleep in background", "ready to sleep"])
  }

  @Test func aSubjectThatGoesAwayIsTold() async {
    let observed = ObservedCore()
    _ = await observed.core.launch()
    observed.core.close()
    #expect(observed.log.names.last == "closed")
  }

  @Test func onlyOneSubjectSpeaksWithSystemd() async throws {
    var first: ServiceManagerLease?
    // Where a service manager runs the tests, another one's subject may have it.
    try await eventually {
      first = .take()
      return first != nil
    }
    #expect(ServiceManagerLease.take() == nil)
    withExtendedLifetime(first) {}
    first = nil
    try await eventually { ServiceManagerLease.take() != nil }
  }
}

extension LifecycleCore {
  func addTask(_ body: @escaping @Sendable () async throws -> Void) {
    add(WorkRunner(self, .given("task")) { _ in try await body() }, WorkOptions(form: .task))
  }

  var clockForTesting: LifecycleClock { LifecycleClock(keeper: self) }
}
