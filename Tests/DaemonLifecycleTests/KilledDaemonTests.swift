// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import DaemonSystemd
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// A kill is not a stop: `exitsWithFailureWhenKilled`.
@Suite(.timeLimit(.minutes(1))) struct KilledDaemonTests {
  private static var configuration: LifecycleConfiguration {
    var configuration = LifecycleConfiguration(logging: .off)
    configuration.systemd.exitsWithFailureWhenKilled = true
    return configuration
  }

  private let log = Log()

  // MARK: Whose signal it is

  private static let rule = KillRule(superiors: [1, 300], asksForJob: false)

  private static func cause(
    _ sender: LifecycleCause.Sender, _ signal: UnixSignal = .sigterm
  ) -> LifecycleCause {
    LifecycleCause(.signal(signal, from: sender, coalesced: 1))
  }

  @Test(arguments: [
    LifecycleCause.Sender.process(pid: 4242, uid: 0), .process(pid: 4242, uid: 1000),
    .queued(claimedPID: 4242, claimedUID: 0),
  ])
  func aSIGTERMOfAnybodyElseIsAKill(_ sender: LifecycleCause.Sender) {
    #expect(Self.rule.isKill(Self.cause(sender)))
    #expect(!Self.rule.isOrder(Self.cause(sender)))
    #expect(!Self.rule.isKill(Self.cause(sender, .sigint)))
    #expect(!Self.rule.isKill(Self.cause(sender, .sighup)))
  }

  /// Claimed or not: a lie gets no more than the status of a stop.
  @Test(arguments: [
    LifecycleCause.Sender.process(pid: 1, uid: 0), .process(pid: 300, uid: 1000),
    .queued(claimedPID: 1, claimedUID: 0),
  ])
  func thoseOfTheServiceManagerAreOrders(_ sender: LifecycleCause.Sender) {
    #expect(!Self.rule.isKill(Self.cause(sender)) && Self.rule.isOrder(Self.cause(sender)))
  }

  /// Nobody knows, so it may be the service manager; but it does not make a stop of a kill.
  @Test(arguments: [
    LifecycleCause.Sender.process(pid: -1, uid: 0), .kernel,
    .queued(claimedPID: nil, claimedUID: nil),
  ])
  func thoseOfNobodyKnownAreNeither(_ sender: LifecycleCause.Sender) {
    #expect(!Self.rule.isKill(Self.cause(sender)) && !Self.rule.isOrder(Self.cause(sender)))
  }

  @Test func systemdAWrapperAndTheDaemonItselfAreSuperiors() {
    let system = ServiceEnvironment([:], processID: 30, processInode: nil)
    #expect(system.superiors(parent: 1) == [1, 30])
    #expect(system.superiors(parent: 20) == [1, 20, 30])
    // The parent is outside of the pid namespace.
    #expect(system.superiors(parent: 0) == [1, 30])
    let user = ServiceEnvironment(["MANAGERPID": "10"], processID: 30, processInode: nil)
    #expect(user.superiors(parent: 20) == [1, 10, 20, 30])
  }

  @Test func withoutSystemdThereIsNoRule() {
    var configuration = Self.configuration
    configuration.systemd.environment = ServiceEnvironment([:])
    #expect(ServiceIntegration(configuration).killRule == nil)
  }

  // MARK: What comes of it

  @Test func aKillEndsInOrderAndWithAFailure() async throws {
    let mock = MockLifecycleSubject(configuration: Self.configuration)
    let listener = Listener("a", log)
    mock.addObserver(listener)
    try await mock.settled()
    log.clear()
    let report = try await mock.send(.sigterm, fromPID: 4242)
    #expect(log.all == ["a background", "a save", "a terminate"])
    #expect(report.problems.isEmpty)
    let exit = mock.exit
    #expect(exit?.code == 143 && exit?.wasKilled == true)
    let reason = "killed by SIGTERM from pid 4242 uid 0, not stopped by the service manager"
    #expect(exit?.description.hasPrefix("exit status 143: \(reason)\n") == true)
  }

  @Test func unlessItIsAskedForAKillIsAStop() async throws {
    let mock = MockLifecycleSubject()
    try await mock.send(.sigterm, fromPID: 4242)
    #expect(mock.exit?.code == 0 && mock.exit?.wasKilled == false)
  }

  @Test func theServiceManagersSignalIsAStop() async throws {
    let mock = MockLifecycleSubject(configuration: Self.configuration)
    try await mock.send(.sigterm)
    #expect(mock.exit?.code == 0)
  }

  @Test func otherReasonsToEndAreNoKills() async throws {
    let called = MockLifecycleSubject(configuration: Self.configuration)
    try await called.send(.terminate, cause: LifecycleCause(.api))
    let interrupted = MockLifecycleSubject(configuration: Self.configuration)
    try await interrupted.send(.sigint, fromPID: 4242)
    #expect(called.exit?.code == 0 && interrupted.exit?.code == 0)
  }

  /// The first counts: a daemon that ends already is not killed.
  @Test func aKillDuringAStopIsNone() async throws {
    var configuration = Self.configuration
    configuration.stopDelay = .seconds(5)
    let mock = MockLifecycleSubject(configuration: configuration)
    mock.inject(.terminate, cause: LifecycleCause(.api))
    mock.inject(.sigterm, fromPID: 4242)
    await mock.advance(by: .seconds(5))
    #expect(mock.exit?.code == 0)
  }

  /// Too soon after the first to count for anything else.
  @Test func aSignalOfTheServiceManagersMakesAStopOfAKill() async throws {
    var configuration = Self.configuration
    configuration.stopDelay = .seconds(5)
    let mock = MockLifecycleSubject(configuration: configuration)
    mock.inject(.sigterm, fromPID: 4242)
    mock.inject(.sigterm, fromPID: 1)
    #expect(mock.exit == nil)
    await mock.advance(by: .seconds(5))
    #expect(mock.exit?.code == 0 && mock.exit?.wasKilled == false)
  }

  @Test(arguments: [UnitJob.stop, .restart, .tryRestart])
  func aJobThatStopsMakesAStopOfAKill(_ job: UnitJob) async throws {
    let mock = MockLifecycleSubject(configuration: Self.configuration)
    mock.setUnitJob(job)
    try await mock.send(.sigterm, fromPID: 4242)
    #expect(mock.exit?.code == 0)
  }

  /// systemd waits for a reload, or for READY=1: it does not want the end.
  @Test(arguments: [UnitJob.start, .reload, .other("verify-active"), nil])
  func aJobThatDoesNotStopIsNoReason(_ job: UnitJob?) async throws {
    let mock = MockLifecycleSubject(configuration: Self.configuration)
    mock.setUnitJob(.stop)
    mock.setUnitJob(job)
    try await mock.send(.sigterm, fromPID: 4242)
    #expect(mock.exit?.code == 143)
  }

  // MARK: Other failures

  @Test func afterAHookThatFailsTheStatusIsThatFailures() async throws {
    let mock = MockLifecycleSubject(configuration: Self.configuration)
    let failing = Scripted(save: { _ in throw Failure() })
    mock.addObserver(failing)
    try await mock.send(.sigterm, fromPID: 4242)
    #expect(mock.exit?.code == 70 && mock.exit?.wasKilled == false)
  }

  /// It has thrown because it was cancelled.
  @Test func aBodyThatThrowsAtItsCancellationIsNoReason() {
    let policy = LifecycleMachine.Policy(configuration: Self.configuration, killRule: Self.rule)
    var machine = LifecycleMachine(policy, state: .foreground)
    var effects = Effects()
    let now = MonotonicTime(nanoseconds: 0)
    let kill = Self.cause(.process(pid: 4242, uid: 0))
    machine.handle(.bodyBegan, at: now, &effects)
    machine.handle(.event(LifecycleEvent(.terminate, cause: kill)), at: now, &effects)
    machine.handle(.bodyEnded(DaemonLifecycle.Failure(Failure())), at: now, &effects)
    let exit = machine.stop.exit
    #expect(exit?.code == 143 && exit?.wasKilled == true && exit?.error == nil)
  }

  @Test func aThirdSignalIsNoKill() async throws {
    var configuration = Self.configuration
    configuration.escalationDelay = .zero
    let mock = MockLifecycleSubject(configuration: configuration)
    let gate = Gate()
    let stuck = Scripted(save: gate.hold)
    mock.addObserver(stuck)
    try await mock.settled()
    for _ in 1...3 { mock.inject(.sigterm, fromPID: 4242) }
    #expect(mock.immediateExitCode == 143)
    #expect(mock.exit?.code == 143 && mock.exit?.wasKilled == false)
    gate.open()
  }

  // MARK: Asking

  /// A daemon that was killed, and whose hooks have ended: systemd is being asked.
  private func asking(
    _ configuration: LifecycleConfiguration = Self.configuration
  ) async throws -> (core: LifecycleCore, facts: FactLog) {
    let facts = FactLog()
    let core = LifecycleCore(
      configuration: configuration, time: .virtual(VirtualTime()), sinks: [facts],
      killRule: KillRule(superiors: [1], asksForJob: true), exitProcess: { _ in })
    _ = await core.launch()
    core.receive(LifecycleEvent(.terminate, cause: Self.cause(.process(pid: 4242, uid: 0))))
    try await core.untilIdle()
    #expect(core.exit == nil && facts.names.last == "seems killed")
    return (core, facts)
  }

  @Test func theExitWaitsForTheAnswer() async throws {
    let (core, facts) = try await asking()
    core.unitJobIsKnown(nil)
    #expect(core.exit?.code == 143 && facts.names.last == "terminated 143")
    core.close()
  }

  @Test func aStopThatWasRequestedMeanwhileIsOne() async throws {
    let (core, facts) = try await asking()
    core.unitJobIsKnown(.stop)
    #expect(core.exit?.code == 0 && facts.names.last == "terminated 0")
    core.close()
  }

  @Test func aSignalOfTheServiceManagersIsAnAnswer() async throws {
    let (core, _) = try await asking()
    core.receive(LifecycleEvent(.terminate, cause: Self.cause(.process(pid: 1, uid: 0))))
    #expect(core.exit?.code == 0)
    core.close()
  }

  /// Once.
  @Test func withoutAnAnswerItIsAKillAfterASecond() async throws {
    let (core, facts) = try await asking()
    await core.advance(by: .milliseconds(999))
    #expect(core.exit == nil)
    await core.advance(by: .milliseconds(1))
    #expect(core.exit?.code == 143)
    core.unitJobIsKnown(.stop)
    #expect(core.exit?.code == 143)
    #expect(facts.names.count { $0 == "seems killed" } == 1)
    core.close()
  }

  @Test func theStopHasNoMoreTimeForThat() async throws {
    var configuration = Self.configuration
    configuration.stopTimeout = .milliseconds(600)
    let (core, _) = try await asking(configuration)
    // The other half is for the process's end.
    await core.advance(by: .milliseconds(300))
    #expect(core.exit?.code == 143)
    core.close()
  }

  /// Found by a simulated life: systemd says what it allows while it is being asked.
  @Test func norIfThatIsLearntMeanwhile() async throws {
    let (core, _) = try await asking()
    core.handle(.stopTimeout(.milliseconds(600)))
    await core.advance(by: .milliseconds(300))
    #expect(core.exit?.code == 143)
    core.close()
  }

  @Test func whoEndsByAJobIsNotAskedAboutAgain() async throws {
    let facts = FactLog()
    let core = LifecycleCore(
      configuration: Self.configuration, time: .virtual(VirtualTime()), sinks: [facts],
      killRule: KillRule(superiors: [1], asksForJob: true), exitProcess: { _ in })
    let early = Scripted(save: { _ in core.unitJobIsKnown(.stop) })
    core.add(early)
    _ = await core.launch()
    core.receive(LifecycleEvent(.terminate, cause: Self.cause(.process(pid: 4242, uid: 0))))
    try await core.untilIdle()
    #expect(core.exit?.code == 0 && !facts.names.contains("seems killed"))
    core.close()
  }

  // MARK: What is said of it

  @Test func systemdIsToldWhy() async throws {
    let manager = try FakeServiceManager()
    let mock = MockLifecycleSubject(configuration: Self.configuration, serviceManager: manager)
    try await mock.send(.sigterm, fromPID: 4242)
    let last = try await manager.next(containing: "EXIT_STATUS")
    #expect(last["EXIT_STATUS"] == "143")
    #expect(
      manager.service.status
        == "ended with status 143, killed by SIGTERM from pid 4242 uid 0, not stopped by the service manager"
    )
    #expect(manager.violations.isEmpty)
  }
}
