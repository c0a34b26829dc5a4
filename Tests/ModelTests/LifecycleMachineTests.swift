// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization
import Testing

@testable import DaemonLifecycle

/// What the machine's parts do together, step by step: single rules that a simulated life seldom comes to.
@Suite struct LifecycleMachineTests {
  private struct Note: CustomNotification {}

  private static let observer = MachineObserver(
    id: ObserverID(value: 1, slot: 0), phase: .standard, name: .type(Int.self),
    receives: [
      ObjectIdentifier(ShouldSaveState.self), ObjectIdentifier(WillSuspend.self),
      ObjectIdentifier(CheckHealth.self), ObjectIdentifier(Note.self),
    ])

  /// A daemon in the foreground with one observer.
  private func machine() -> LifecycleMachine {
    let policy = LifecycleMachine.Policy(configuration: .init(), hasServiceManager: true)
    var machine = LifecycleMachine(policy, state: .foreground)
    _ = starts(.add(Self.observer), &machine)
    return machine
  }

  /// A daemon whose sleep leaves its one observer, which receives these, no time for a pause.
  private func machineWithoutTimeToPause(_ types: [Any.Type]) -> LifecycleMachine {
    let configuration = LifecycleConfiguration(cancellationGrace: .zero)
    var machine = LifecycleMachine(.init(configuration: configuration), state: .foreground)
    let observer = MachineObserver(
      id: ObserverID(value: 1, slot: 0), phase: .standard, name: .body,
      receives: types.map { ObjectIdentifier($0) })
    _ = starts(.add(observer), &machine)
    _ = starts(.sleepDelay(.milliseconds(1)), &machine)
    return machine
  }

  private func at(_ seconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: seconds * 1_000_000_000)
  }

  /// Takes an input in, and begins the hooks that it starts.
  private func starts(
    _ input: LifecycleMachine.Input, _ machine: inout LifecycleMachine, at seconds: Int64 = 0
  ) -> [CallID] {
    var effects = Effects()
    machine.handle(input, at: at(seconds), &effects)
    let calls = effects.takeStarts()
    for call in calls { _ = machine.move(call, to: .begun) }
    return calls
  }

  @Test func moreTimeForAHookExtendsTheStop() throws {
    var machine = machine()
    let save = try #require(starts(.event(.init(.terminate)), &machine).first)
    let end = try #require(machine.stop.budget?.end)
    _ = starts(.extend(save, by: .seconds(60)), &machine)
    #expect(machine.stop.budget?.end == end.advanced(by: .seconds(60)))
  }

  private func facts(
    _ input: LifecycleMachine.Input, _ machine: inout LifecycleMachine, at seconds: Int64 = 0
  ) -> [LifecycleFact] {
    var effects = Effects()
    machine.handle(input, at: at(seconds), &effects)
    for call in effects.takeStarts() { _ = machine.move(call, to: .begun) }
    return effects.messages.compactMap { if case .fact(let fact) = $0 { fact } else { nil } }
  }

  /// Its timer runs while the daemon starts, and while it reloads.
  @Test func moreTimeForAHookOfAReloadIsAskedOfTheServiceManager() throws {
    var machine = machine()
    let save = try #require(starts(.event(.init(.reload)), &machine).first)
    let told = facts(.extend(save, by: .seconds(60)), &machine)
    #expect(told.contains { if case .extended = $0 { true } else { false } })
  }

  @Test func whatATerminationHasCutIsReportedAsOvertaken() throws {
    var machine = machine()
    let save = try #require(starts(.event(.init(.reload)), &machine).first)
    _ = facts(.event(.init(.terminate)), &machine)
    let reports = facts(.ended(save, .completed), &machine).compactMap { fact in
      if case .ended(.reload, let report, _, _) = fact { report.isOvertaken } else { nil }
    }
    #expect(reports == [true])
  }

  /// What fits is nothing to warn of.
  @Test func aDrainThatFitsIsBegunWithoutAWord() {
    var configuration = LifecycleConfiguration()
    configuration.stopDelay = .seconds(3)
    var machine = LifecycleMachine(.init(configuration: configuration), state: .foreground)
    let told = facts(.event(.init(.terminate)), &machine)
    #expect(told.contains { if case .draining(_, .seconds(3)) = $0 { true } else { false } })
    #expect(!told.contains { if case .warning = $0 { true } else { false } })
  }

  /// The outer hook's time is all that there is for its post.
  @Test func moreTimeThatANestedHookCannotGetDoesNotExtendTheStop() throws {
    var machine = machine()
    let save = try #require(starts(.event(.init(.terminate)), &machine).first)
    let nested = try #require(starts(.post(LifecyclePost(Note()), inside: save), &machine).first)
    let end = machine.stop.budget?.end
    _ = starts(.extend(nested, by: .seconds(60)), &machine)
    #expect(machine.stop.budget?.end == end)
    #expect(machine.calls.find(nested)?.deadline == machine.calls.find(save)?.deadline)
  }

  /// logind's limit is for the sleep that it was read for.
  @Test func aSleepThatWasCalledOffLeavesNoLimitToTheNext() {
    var machine = machine()
    _ = starts(.sleepDelay(.seconds(5)), &machine)
    _ = starts(.event(.init(.wakeUp)), &machine)
    let calls = starts(.event(.init(.suspend)), &machine, at: 1)
    let isLimited = machine.sleep.budget != nil
    #expect(calls.count == 1 && !isLimited)
  }

  @Test func aSleepIsLimitedByWhatLogindGrants() {
    var machine = machine()
    _ = starts(.sleepDelay(.seconds(5)), &machine)
    _ = starts(.event(.init(.suspend)), &machine, at: 1)
    #expect(machine.sleep.budget?.end == at(5))
  }

  // MARK: Time

  /// One that is suspended with an observer of this notification, when logind waits for so long.
  private func suspending(
    _ type: any LifecycleNotification.Type, delay: Duration, grace: Duration
  ) -> (CallTime, count: Int) {
    let configuration = LifecycleConfiguration(cancellationGrace: grace)
    var machine = LifecycleMachine(.init(configuration: configuration), state: .foreground)
    let observer = MachineObserver(
      id: ObserverID(value: 1, slot: 0), phase: .standard, name: .type(Int.self),
      receives: [ObjectIdentifier(type)])
    _ = starts(.add(observer), &machine)
    _ = starts(.sleepDelay(delay), &machine)
    let calls = starts(.event(.init(.suspend)), &machine)
    let call = calls.first.flatMap { machine.calls.find($0) }
    let time = CallTime(deadline: call?.deadline ?? at(0), grace: call?.grace ?? .zero)
    return (time, calls.count)
  }

  /// A hook for which there is less than a millisecond is not begun.
  @Test func aMillisecondIsTheLeastThatAHookIsGiven() {
    #expect(suspending(WillSuspend.self, delay: .milliseconds(1), grace: .zero).count == 1)
    #expect(suspending(WillSuspend.self, delay: .nanoseconds(999_999), grace: .zero).count == 0)
  }

  /// So that it is over when the budget is.
  @Test func aQuarterOfWhatABudgetLeavesIsTheLongestGrace() {
    let (time, _) = suspending(WillSuspend.self, delay: .seconds(8), grace: .seconds(3))
    #expect(time.deadline == at(6) && time.grace == .seconds(2))
    let (short, _) = suspending(WillSuspend.self, delay: .seconds(8), grace: .seconds(1))
    #expect(short.deadline == at(7) && short.grace == .seconds(1))
  }

  @Test func whoAsksForNoMoreTimeGetsNone() throws {
    var machine = machine()
    let save = try #require(starts(.event(.init(.terminate)), &machine).first)
    let asked = facts(.extend(save, by: .zero), &machine)
    #expect(asked.isEmpty)
    // Nobody was promised anything, so a shorter stop is a shorter stop.
    _ = starts(.stopTimeout(.seconds(10)), &machine)
    let end = machine.stop.budget?.end ?? .distantFuture
    #expect(end <= at(10))
  }

  private static let signal = LifecycleCause(
    .signal(.sigterm, from: .process(pid: 7, uid: 0), coalesced: 1))

  @Test func afterASecondSignalNoHookGetsMoreTime() throws {
    var machine = machine()
    let stop = LifecycleEvent(.terminate, cause: Self.signal)
    let save = try #require(starts(.event(stop), &machine).first)
    _ = starts(.event(stop), &machine, at: 2)
    let end = try #require(machine.stop.budget?.end)
    _ = starts(.extend(save, by: .seconds(600)), &machine, at: 3)
    let deadline = try #require(machine.calls.find(save)?.deadline)
    #expect(machine.stop.budget?.end == end && deadline <= end)
  }

  // MARK: Deliveries

  /// With one step left or none, the others are not notified any more.
  @Test func whoWasSkippedMakesATransitionOvertaken() throws {
    var machine = LifecycleMachine(.init(configuration: .init()), state: .background)
    for value: UInt64 in 1...2 {
      let observer = MachineObserver(
        id: ObserverID(value: value, slot: Int(value) - 1), phase: .standard, name: .body,
        receives: [ObjectIdentifier(WillEnterForeground.self)])
      _ = starts(.add(observer), &machine)
    }
    let first = try #require(
      starts(.event(.init(.resume(for: .operator))), &machine).first)
    _ = facts(.event(.init(.terminate)), &machine)
    let reports = facts(.ended(first, .completed), &machine).compactMap { fact in
      if case .ended(.foreground, let report, _, _) = fact { report } else { nil }
    }
    #expect(reports.map(\.isOvertaken) == [true])
    #expect(reports.first?.entries.map { "\($0.outcome)" }.count == 2)
  }

  /// There was no time to pause it: it saves, and is paused when the machine is awake again, and not before.
  @Test func whoCouldNotBePausedInTimeSavesAndIsPausedAfterTheSleep() throws {
    var machine = machineWithoutTimeToPause([
      DidEnterBackground.self, ShouldSaveState.self, WillSuspend.self,
    ])
    let save = starts(.event(.init(.suspend)), &machine)
    #expect(save.compactMap { machine.calls.find($0)?.step.kind } == [.shouldSaveState])
    #expect(progress(machine, 1)?.isBusy == true)
    // What follows the suspend is the pause: nobody is told of a sleep who was not paused.
    var effects = Effects()
    machine.handle(.ended(try #require(save.first), .completed), at: at(0), &effects)
    let pause = effects.takeStarts()
    // And it was tried once: the suspend's report says so.
    let entries = effects.messages.compactMap { message in
      if case .reported(let report, _) = message { report.entries.count } else { nil }
    }
    #expect(entries.first == 2)
    #expect(pause.compactMap { machine.calls.find($0)?.step.kind } == [.didEnterBackground])
    #expect(progress(machine, 1)?.isBusy == false)
  }

  @Test func oneWhoIsGoneIsRemovedAndNotReported() throws {
    var machine = machine()
    let save = try #require(starts(.event(.init(.saveState)), &machine).first)
    var effects = Effects()
    machine.handle(.ended(save, .gone), at: at(0), &effects)
    let entries = effects.messages.flatMap { message in
      if case .reported(let report, _) = message { report.entries } else { [] }
    }
    let (removed, released) = (effects.removed.map(\.id.value), effects.released.count)
    #expect(entries.isEmpty && removed == [1] && released == 1)
  }

  /// Whoever is gone is neither ill nor silent.
  @Test func aCheckOfOneWhoIsGoneIsAnswered() throws {
    var machine = machine()
    let check = try #require(
      starts(.event(LifecycleEvent(.checkHealth, cause: LifecycleCause(.api))), &machine).first)
    _ = starts(.healthAsked(round: 1), &machine)
    _ = starts(.healthAnswer(.pool(round: 1)), &machine)
    let verdicts = facts(.ended(check, .gone), &machine).compactMap { fact in
      switch fact {
      case .healthy: "healthy"
      case .unhealthy(let reason): reason
      default: nil
      }
    }
    #expect(verdicts == ["healthy"])
  }

  /// What went wrong with a post inside of a hook is in no transition's report, so it is published by itself.
  @Test(arguments: [true, false]) func problemsOfAPostInAHookArePublished(_ fails: Bool) throws {
    var machine = machine()
    let save = try #require(starts(.event(.init(.saveState)), &machine).first)
    let post = LifecycleMachine.Input.post(LifecyclePost(Note()), inside: save)
    let nested = try #require(starts(post, &machine).first)
    let end: LifecycleMachine.CallEnd =
      fails ? .failed(DaemonLifecycle.Failure(SimulatedFailure())) : .completed
    let counts = facts(.ended(nested, end), &machine).compactMap { fact in
      if case .problems(let problems) = fact { problems.count } else { nil }
    }
    #expect(counts == (fails ? [1] : []))
  }

  /// The last reference to what was posted is let go of outside of the lock.
  @Test func whatWasPostedIsReleasedByTheShell() throws {
    func released(_ input: consuming LifecycleMachine.Input) throws -> Int {
      var machine = machine()
      let call = try #require(starts(input, &machine).first)
      var effects = Effects()
      machine.handle(.ended(call, .completed), at: at(0), &effects)
      return answers(effects).count
    }
    #expect(try released(.post(LifecyclePost(Note()), inside: nil)) == 1)
    #expect(try released(.event(.init(.saveState))) == 0)
  }

  /// Until then its observer receives nothing more, so whoever reads the log wants to know.
  @Test func theEndOfAnAbandonedHookIsPublished() throws {
    var machine = machine()
    let save = try #require(starts(.event(.init(.saveState)), &machine).first)
    _ = facts(.clock, &machine, at: 10)
    _ = facts(.clock, &machine, at: 11)
    let late = facts(.ended(save, .completed), &machine, at: 15).compactMap { fact in
      if case .endedLate(let sentence) = fact { sentence } else { nil }
    }
    #expect(
      late == ["Int, ShouldSaveState: has ended after 15 s, after it was abandoned"])
  }

  /// What was held back is no longer wanted when the hold is over, and nothing else is to be done.
  @Test func aTransitionEndsWithoutItsLastStep() throws {
    var machine = machine()
    let pause = try #require(starts(.event(.init(.pause(for: .operator))), &machine).first)
    _ = starts(.ended(pause, .completed), &machine)
    let save = try #require(starts(.event(.init(.suspend)), &machine).first)
    _ = starts(.hold, &machine)
    _ = starts(.ended(save, .completed), &machine)
    _ = starts(.event(.init(.wakeUp)), &machine)
    let ended = facts(.release, &machine).compactMap { fact in
      if case .ended(let kind, _, _, _) = fact { kind } else { nil }
    }
    #expect(ended == [.suspend])
  }

  @Test func hooksForAllAreCalledOnceInTheirGroup() {
    var machine = LifecycleMachine(.init(configuration: .init()), state: .foreground)
    var effects = Effects()
    for value in 1...4 {
      let phase = LifecyclePhase(order: value > 2 ? 1 : 0, concurrent: true)
      let observer = MachineObserver(
        id: ObserverID(value: UInt64(value), slot: value - 1), phase: phase, name: .body,
        receives: [nil])
      machine.handle(.add(observer), at: at(0), &effects)
    }
    _ = callsUntilIdle(&machine, &effects)
    machine.handle(.event(.init(.saveState)), at: at(0), &effects)
    let called = callsUntilIdle(&machine, &effects)
    #expect(called.count == 2 && Set(called) == [[1, 2], [3, 4]])
  }

  /// Ends all hooks that begin; who was called, group by group.
  private func callsUntilIdle(
    _ machine: inout LifecycleMachine, _ effects: inout Effects
  ) -> [[UInt64]] {
    var called: [[UInt64]] = []
    while !effects.starts.isEmpty {
      let starts = effects.takeStarts()
      called.append(starts.compactMap { machine.calls[$0].observer?.value }.sorted())
      for call in starts { machine.handle(.ended(call, .completed), at: at(0), &effects) }
    }
    return called
  }

  @Test func progressCountsWhatHasEndedWhatRunsAndWhatIsPlanned() throws {
    var machine = machine()
    _ = starts(.add(newcomer([ShouldSaveState.self, ShouldReload.self])), &machine)
    let save = try #require(starts(.event(.init(.reload)), &machine).first)
    _ = starts(.ended(save, .completed), &machine)
    let progress = facts(.clock, &machine, at: 1).compactMap { fact in
      if case .progress(let progress) = fact { progress } else { nil }
    }
    #expect(progress.map(\.done) == [1] && progress.map(\.total) == [3])
    #expect(progress.first?.waitingFor.count == 1)
  }

  private func requestedTimes(_ facts: [LifecycleFact]) -> [Duration] {
    facts.compactMap { if case .extended(let time) = $0 { time } else { nil } }
  }

  /// Until the bus has said how long a stop may take, it may be less than the stop's 90 s: they are requested, with a
  /// second more, at once and again.
  @Test func anUnknownLimitOfAStopIsExtended() {
    var machine = machine()
    let times = [
      requestedTimes(facts(.event(.init(.terminate)), &machine)),
      requestedTimes(facts(.clock, &machine, at: 1)),
    ]
    #expect(times == [[.seconds(91)], [.seconds(90)]])
  }

  @Test func aKnownLimitOfAStopIsNot() {
    var machine = machine()
    let inputs: [LifecycleMachine.Input] = [
      .stopTimeout(.seconds(6)), .event(.init(.terminate)), .clock,
    ]
    #expect(inputs.flatMap { requestedTimes(facts($0, &machine)) } == [])
  }

  /// The drain is a part of the stop: its time is requested at its beginning.
  @Test func anUnknownLimitIsExtendedBeforeADrain() {
    let configuration = LifecycleConfiguration(stopTimeout: .seconds(40), stopDelay: .seconds(5))
    let policy = LifecycleMachine.Policy(configuration: configuration, hasServiceManager: true)
    var machine = LifecycleMachine(policy, state: .foreground)
    _ = starts(.add(Self.observer), &machine)
    #expect(requestedTimes(facts(.event(.init(.terminate)), &machine)) == [.seconds(41)])
    #expect(requestedTimes(facts(.clock, &machine, at: 5)) == [.seconds(36)])
  }

  /// What was asked for is asked for again until it is over.
  @Test func anExtensionIsRepeatedWhileItLasts() throws {
    var machine = machine()
    let save = try #require(starts(.event(.init(.reload)), &machine).first)
    // Until 11, a second for the grace, and one more.
    _ = facts(.extend(save, by: .seconds(1)), &machine)
    let times = [Int64(1), 12, 13].map { second in
      requestedTimes(facts(.clock, &machine, at: second))
    }
    #expect(times == [[.seconds(12)], [.seconds(1)], []])
  }

  @Test func whatIsSaidToOperatorsIsPublished() {
    var machine = machine()
    let inputs: [LifecycleMachine.Input] = [.status("busy"), .warning("late"), .recovered]
    let said = inputs.flatMap { input in
      facts(input, &machine).map { fact in
        switch fact {
        case .statusNote(.daemon, let text): text ?? "none"
        case .warning(let text): text
        case .recovered: "recovered"
        default: "else"
        }
      }
    }
    #expect(said == ["busy", "late", "recovered"])
    // A second later what was set too soon.
    let counts = [
      facts(.status("idle"), &machine).count, facts(.clock, &machine, at: 1).count,
    ]
    #expect(counts == [0, 1])
  }

  /// Where no thread was to be had, the shell is asked to ask again; else it is not.
  @Test(arguments: [true, false]) func swiftsExecutorsAreAskedOnce(_ wereAsked: Bool) {
    let policy = LifecycleMachine.Policy(configuration: .init(), watchdogPeriod: .seconds(8))
    var machine = LifecycleMachine(policy, state: .foreground)
    var effects = Effects()
    machine.handle(.armed, at: at(0), &effects)
    machine.handle(.watchdogTick(stall: .zero), at: at(0), &effects)
    if wereAsked, let round = effects.healthRound {
      machine.handle(.healthAsked(round: round), at: at(0), &effects)
    }
    effects = Effects()
    machine.handle(.watchdogTick(stall: .zero), at: at(3), &effects)
    let asksAgain = effects.healthRound != nil
    #expect(asksAgain != wereAsked)
  }

  @Test(arguments: [Duration.zero, .nanoseconds(1)])
  func aLimitThatFitsIntoAStopIsNothingToWarnOf(_ more: Duration) {
    let configuration = LifecycleConfiguration()
    var machine = LifecycleMachine(.init(configuration: configuration), state: .foreground)
    let free = StopBudget.timeBeforeSave(configuration, allowed: nil)
    let observer = MachineObserver(
      id: ObserverID(value: 1, slot: 0), phase: .standard, name: .body, receives: [],
      deadline: free + more)
    let warnings = facts(.add(observer), &machine).count {
      if case .warning = $0 { true } else { false }
    }
    #expect(warnings == (more == .zero ? 0 : 1))
  }

  /// The next tick names who has not answered the last, unless the process was stalled from outside.
  @Test(arguments: [Duration.zero, .seconds(1)])
  func silenceUntilTheNextTickIsToldOf(_ stall: Duration) throws {
    let policy = LifecycleMachine.Policy(configuration: .init(), watchdogPeriod: .seconds(8))
    var machine = LifecycleMachine(policy, state: .foreground)
    _ = starts(.add(Self.observer), &machine)
    _ = starts(.armed, &machine)
    let tick = LifecycleMachine.Input.watchdogTick(stall: .zero)
    let check = try #require(starts(tick, &machine).first)
    // Half of the period is what an observer has.
    #expect(machine.calls.find(check)?.deadline == at(4))
    let next = LifecycleMachine.Input.watchdogTick(stall: stall)
    let silences = facts(next, &machine, at: 1).count {
      if case .unhealthy = $0 { true } else { false }
    }
    #expect(silences == (stall == .zero ? 1 : 0))
  }

  @Test func nobodyAndNothingIsLeftOfASubjectThatIsGone() {
    var configuration = LifecycleConfiguration()
    configuration.stopDelay = .seconds(3)
    var machine = LifecycleMachine(.init(configuration: configuration), state: .foreground)
    _ = starts(.add(Self.observer), &machine)
    _ = starts(.event(.init(.terminate)), &machine)
    let wasDraining = machine.stop.isDraining
    _ = starts(.close, &machine)
    let isDraining = machine.stop.isDraining
    #expect(wasDraining && !isDraining)
    #expect(machine.subscribers.all.isEmpty)
    #expect(progress(machine, 1) == nil)
  }

  // MARK: The stop

  @Test func theSameStopIsRemarkedUponOnce() {
    var machine = machine()
    let stop = LifecycleEvent(.terminate, cause: Self.signal)
    let remarks = (0..<3).map { _ in
      facts(.event(stop), &machine).count { if case .info = $0 { true } else { false } }
    }
    #expect(remarks == [0, 1, 0])
  }

  /// It is not held back for nothing, or there would be no end.
  @Test func whereThereIsNoTimeToDrainTheStopBeginsAtOnce() {
    var configuration = LifecycleConfiguration()
    configuration.stopDelay = .seconds(3)
    var machine = LifecycleMachine(.init(configuration: configuration), state: .foreground)
    _ = starts(.stopTimeout(.zero), &machine)
    _ = starts(.event(.init(.terminate)), &machine)
    let (isDraining, isTerminating) = (machine.stop.isDraining, machine.isTerminating)
    #expect(!isDraining && isTerminating)
  }

  /// Who throws a cancellation that nobody has asked for has failed.
  @Test(arguments: [true, false]) func aCancelledBodyIsNoFailure(_ wasAsked: Bool) {
    var machine = machine()
    _ = starts(.bodyBegan, &machine)
    if wasAsked { _ = starts(.event(.init(.terminate)), &machine) }
    _ = starts(.bodyEnded(DaemonLifecycle.Failure(CancellationError())), &machine)
    #expect((machine.body.failure == nil) == wasAsked)
    guard !wasAsked, case .bodyFailed = machine.registry.termination?.origin else {
      #expect(wasAsked)
      return
    }
  }

  /// Nothing comes later, so who could not be paused in time is paused now.
  @Test func theStopReleasesThoseForWhomASleepLeftNoTime() throws {
    var machine = machineWithoutTimeToPause([
      DidEnterBackground.self, ShouldSaveState.self,
    ])
    _ = starts(.event(.init(.suspend)), &machine)
    #expect(progress(machine, 1)?.isBusy == true)
    _ = starts(.event(.init(.terminate)), &machine)
    #expect(progress(machine, 1)?.isBusy == false)
  }

  /// Else whoever has started the daemon would wait for good.
  @Test func aLaunchThatIsOvertakenHasEnded() {
    var machine = LifecycleMachine(.init(configuration: .init()))
    let observer = MachineObserver(
      id: ObserverID(value: 1, slot: 0), phase: .standard, name: .body,
      receives: [ObjectIdentifier(DidFinishLaunching.self)])
    _ = starts(.add(observer), &machine)
    _ = starts(.launch { _ in }, &machine)
    var effects = Effects()
    machine.handle(.event(.init(.terminate)), at: at(0), &effects)
    let ends = effects.messages.count { if case .launchEnded = $0 { true } else { false } }
    #expect(ends == 1)
  }

  @Test func aDaemonThatWasNeverLaunchedCancelsItsBody() {
    var machine = LifecycleMachine(.init(configuration: .init()))
    _ = starts(.bodyBegan, &machine)
    var effects = Effects()
    machine.handle(.event(.init(.terminate)), at: at(0), &effects)
    let (cancels, hasExited) = (effects.cancelsBody, machine.stop.exit != nil)
    #expect(cancels && hasExited)
  }

  /// It comes out of the reserve, and most of that is left for the save.
  @Test func aSecondSignalGivesAQuarterOfTheReserveAsGrace() throws {
    let configuration = LifecycleConfiguration(
      cancellationGrace: .seconds(10), saveReserve: .seconds(8))
    var machine = LifecycleMachine(.init(configuration: configuration), state: .foreground)
    let observer = MachineObserver(
      id: ObserverID(value: 1, slot: 0), phase: .standard, name: .body,
      receives: [ObjectIdentifier(DidEnterBackground.self)])
    _ = starts(.add(observer), &machine)
    let stop = LifecycleEvent(.terminate, cause: Self.signal)
    let pause = try #require(starts(.event(stop), &machine).first)
    _ = starts(.event(stop), &machine, at: 2)
    let call = try #require(machine.calls.find(pause))
    #expect(call.isCancelled && call.next == at(4))
  }

  @Test func theThirdSignalReportsWhatRanAndLetsGoOfIt() throws {
    var machine = machine()
    let stop = LifecycleEvent(.terminate, cause: Self.signal)
    _ = starts(.event(stop), &machine)
    _ = starts(.event(stop), &machine, at: 2)
    var effects = Effects()
    machine.handle(.event(stop), at: at(4), &effects)
    let released = effects.released.count + effects.removed.count
    #expect(effects.exitsWith == 128 + 15 && released == 2)
    let entries = try #require(machine.stop.exit?.report.entries)
    #expect(entries.map(\.outcome) == [.abandoned(.running)])
  }

  private func answers(_ effects: borrowing Effects) -> [LifecycleReport] {
    effects.messages.compactMap { if case .answered(_, let report) = $0 { report } else { nil } }
  }

  @Test func theThirdSignalAnswersWhoHasPosted() {
    var machine = machine()
    let stop = LifecycleEvent(.terminate, cause: Self.signal)
    _ = starts(.post(LifecyclePost(Note()), inside: nil), &machine)
    _ = starts(.event(stop), &machine)
    _ = starts(.event(stop), &machine, at: 2)
    var effects = Effects()
    machine.handle(.event(stop), at: at(4), &effects)
    #expect(answers(effects).count == 1)
  }

  /// For those who would have received it, and nobody else.
  @Test func aPostThatComesTooLateIsAnsweredAndReleased() {
    var machine = machine()
    _ = starts(.add(newcomer([ShouldSaveState.self])), &machine)
    _ = starts(.event(.init(.terminate)), &machine)
    var effects = Effects()
    machine.handle(.post(LifecyclePost(Note()), inside: nil), at: at(0), &effects)
    #expect(answers(effects).map { $0.entries.map(\.observer) } == [["Int"]])
  }

  /// Then there are no observers that could be named.
  @Test func aPostAfterTheEndIsAnsweredForAll() throws {
    var machine = machine()
    let save = try #require(starts(.event(.init(.terminate)), &machine).first)
    var effects = Effects()
    machine.handle(.ended(save, .completed), at: at(0), &effects)
    let removed = effects.removed.map(\.id.value)
    #expect(removed == [1])
    machine.handle(.post(LifecyclePost(Note()), inside: nil), at: at(0), &effects)
    #expect(answers(effects).map { $0.entries.map(\.observer) } == [["all observers"]])
  }

  /// Whether they wait, are being delivered, or come later: each once.
  @Test func theEndOfTheSubjectAnswersAllPosts() throws {
    var machine = machine()
    let post = try #require(starts(.post(LifecyclePost(Note()), inside: nil), &machine).first)
    _ = starts(.post(LifecyclePost(Note()), inside: nil), &machine)
    var effects = Effects()
    machine.handle(.close, at: at(0), &effects)
    machine.handle(.close, at: at(0), &effects)
    let atOnce = answers(effects).count
    machine.handle(.ended(post, .completed), at: at(0), &effects)
    machine.handle(.post(LifecyclePost(Note()), inside: nil), at: at(0), &effects)
    #expect(atOnce == 2 && answers(effects).count == 3)
  }

  /// A mock may begin in a later state, or the daemon may have been terminated before.
  @Test func aLaunchWithNothingToLaunchIsAnsweredAtOnce() {
    var machine = machine()
    var effects = Effects()
    machine.handle(.launch { _ in }, at: at(0), &effects)
    let ends = effects.messages.count { if case .launchEnded = $0 { true } else { false } }
    #expect(ends == 1)
  }

  /// Whoever waits for the end is answered once, also who comes later.
  @Test func theEndIsAnswered() throws {
    let answers = Atomic<Int>(0)
    @Sendable func count(_ exit: LifecycleExit) { answers.add(1, ordering: .relaxed) }
    var machine = machine()
    _ = starts(.awaitExit(count), &machine)
    let save = try #require(starts(.event(.init(.terminate)), &machine).first)
    var effects = Effects()
    machine.handle(.ended(save, .completed), at: at(0), &effects)
    machine.handle(.awaitExit(count), at: at(0), &effects)
    for case .exited(let exit, let waiters) in effects.messages { waiters(exit) }
    #expect(answers.load(ordering: .relaxed) == 2)
  }

  /// `run` has waited, and the process has the exit grace to end.
  @Test func theExitIsExpectedFromTheEndOn() throws {
    var machine = machine()
    _ = starts(.runWaits, &machine)
    let save = try #require(starts(.event(.init(.terminate)), &machine).first)
    let before = machine.stop.deadline
    _ = starts(.ended(save, .completed), &machine, at: 1)
    let (after, hasEnded) = (machine.stop.deadline, machine.stop.exit != nil)
    #expect(before == .distantFuture && hasEnded && after == at(3))
    // Also when `run` comes to wait after the end.
    machine = self.machine()
    let last = try #require(starts(.event(.init(.terminate)), &machine).first)
    _ = starts(.ended(last, .completed), &machine, at: 1)
    let unexpected = machine.stop.deadline
    _ = starts(.runWaits, &machine, at: 2)
    let expected = machine.stop.deadline
    #expect(unexpected == .distantFuture && expected == at(4))
    var effects = Effects()
    machine.handle(.clock, at: at(4), &effects)
    let isOverdue = effects.isOverdue
    #expect(isOverdue)
  }

  // MARK: Newcomers

  private func newcomer(
    _ types: [any LifecycleNotification.Type], slot: Int = 1
  ) -> MachineObserver {
    MachineObserver(
      id: ObserverID(value: 2, slot: slot), phase: .standard, name: .type(String.self),
      receives: types.map { ObjectIdentifier($0) })
  }

  private func progress(
    _ machine: borrowing LifecycleMachine, _ id: UInt64
  ) -> LifecycleMembers.ObserverProgress? {
    var progress: LifecycleMembers.ObserverProgress?
    machine.registry.members.forEach { _ in
      true
    } _: {
      if $0.id.value == id { progress = $0.progress }
    }
    return progress
  }

  @Test(arguments: [LifecycleState.foreground, .background])
  func aNewcomerWithoutAHookForWhatItHasMissedIsSentNothing(_ state: LifecycleState) {
    var machine = LifecycleMachine(.init(configuration: .init()), state: state)
    var effects = Effects()
    machine.handle(
      .add(newcomer([ShouldSaveState.self, DidEnterBackground.self], slot: 0)), at: at(0), &effects)
    #expect(effects.messages.isEmpty && effects.starts.isEmpty)
    #expect(progress(machine, 2)?.reachedState == state)
    let calls = starts(.event(.init(.terminate)), &machine)
    #expect(calls.count == 1)
  }

  /// As one that was there before: it is where it would be had it waited for its turn.
  @Test(arguments: [LifecycleState.foreground, .background])
  func aNewcomerIsWhereItsTurnWouldHaveLeftIt(_ state: LifecycleState) {
    var skips = LifecycleMachine(.init(configuration: .init()), state: state)
    _ = starts(.add(newcomer([ShouldSaveState.self], slot: 0)), &skips)
    var waits = LifecycleMachine(.init(configuration: .init()), state: state)
    _ = starts(.hold, &waits)
    _ = starts(.add(newcomer([ShouldSaveState.self], slot: 0)), &waits)
    #expect(progress(waits, 2)?.reachedState == .launching)
    _ = starts(.release, &waits)
    #expect(progress(skips, 2) == progress(waits, 2))
  }

  @Test func aNewcomerWithAHookCatchesUp() {
    var machine = machine()
    let launch = starts(.add(newcomer([DidFinishLaunching.self])), &machine)
    #expect(launch.count == 1)
  }

  /// The others go on: who comes in the midst of a step waits for its turn.
  @Test func aNewcomerInTheMidstOfAStepWaits() throws {
    var machine = machine()
    let save = try #require(starts(.event(.init(.saveState)), &machine).first)
    _ = starts(.add(newcomer([ShouldSaveState.self])), &machine)
    #expect(progress(machine, 2)?.reachedState == .launching)
    _ = starts(.ended(save, .completed), &machine)
    #expect(progress(machine, 2)?.reachedState == .foreground)
  }

  @Test func whoAsksForAHealthCheckIsItsCause() {
    var machine = machine()
    var effects = Effects()
    machine.handle(
      .event(LifecycleEvent(.checkHealth, cause: LifecycleCause(.api))), at: at(0), &effects)
    let causes = effects.messages.compactMap { message in
      if case .announced(_, let cause, _) = message { "\(cause)" } else { nil }
    }
    #expect(causes == ["\(LifecycleCause(.api))"])
  }

  /// A check costs context switches, in a daemon that has nothing else to do.
  @Test func everySecondTickChecks() {
    let policy = LifecycleMachine.Policy(configuration: .init(), watchdogPeriod: .seconds(8))
    var machine = LifecycleMachine(policy, state: .foreground)
    var effects = Effects()
    machine.handle(.armed, at: at(0), &effects)
    var (asked, pings) = ([Bool](), 0)
    for (tick, stall) in [0, 0, 0, 0, 5].enumerated() {
      let now = at(Int64(3 * tick))
      machine.handle(
        .watchdogTick(stall: .seconds(stall)), at: now, &effects)
      asked.append(effects.healthRound != nil)
      if let round = effects.healthRound {
        machine.handle(.healthAsked(round: round), at: now, &effects)
        machine.handle(.healthAnswer(.pool(round: round)), at: now, &effects)
        machine.handle(.healthAnswer(.mainActor), at: now, &effects)
      }
      for case .fact(.healthy) in effects.messages { pings += 1 }
      effects = Effects()
    }
    // The last comes after a stall from outside, and is forgiven at once.
    #expect(asked == [true, false, true, false, true])
    #expect(pings == 6)
  }

  /// So one failed check has no consequence.
  @Test func theTickAfterAFailedCheckChecksAgain() throws {
    let policy = LifecycleMachine.Policy(configuration: .init(), watchdogPeriod: .seconds(8))
    var machine = LifecycleMachine(policy, state: .foreground)
    _ = starts(.add(Self.observer), &machine)
    _ = starts(.armed, &machine)
    let tick = LifecycleMachine.Input.watchdogTick(stall: .zero)
    var checks: [Bool] = []
    for (number, isWell) in [true, true, false, true].enumerated() {
      let check = starts(tick, &machine, at: Int64(3 * number)).first
      checks.append(check != nil)
      guard let check else { continue }
      let round = try #require(machine.health.unasked)
      _ = starts(.healthAsked(round: round), &machine)
      _ = starts(.healthAnswer(.pool(round: round)), &machine)
      let end = LifecycleMachine.CallEnd.failed(Failure(CancellationError()))
      _ = starts(.ended(check, isWell ? .completed : end), &machine)
    }
    #expect(checks == [true, false, true, true])
  }
}

/// Steps whose receivers are searched for: the machine asks, waits, and goes on with the answer.
@Suite struct KnownHooksTests {
  private final class One: LifecycleObserver {}
  private final class Other: LifecycleObserver {}

  private let now = MonotonicTime(nanoseconds: 0)

  private func machine(_ state: LifecycleState = .foreground) -> LifecycleMachine {
    var machine = LifecycleMachine(.init(configuration: .init()), state: state)
    _ = add(1, One.self, &machine)
    return machine
  }

  private func add(
    _ value: UInt64, _ type: any LifecycleObserver.Type, _ machine: inout LifecycleMachine
  ) -> NotificationKinds {
    let index = machine.hooks.index(of: type)
    let id = ObserverID(value: value, slot: Int(value) - 1)
    let added = MachineObserver(
      id: id, phase: .standard, name: .body, receives: [], hookType: index)
    return give(.add(added), &machine).searches
  }

  /// What is searched for, and how many hooks begin.
  private func give(
    _ input: LifecycleMachine.Input, _ machine: inout LifecycleMachine
  ) -> (searches: NotificationKinds, starts: [CallID]) {
    var effects = Effects()
    machine.handle(input, at: now, &effects)
    return (effects.searches, effects.takeStarts())
  }

  /// The type was searched for these kinds, and has these hooks.
  private func found(
    _ kinds: [NotificationKind], of searched: [NotificationKind]
  ) -> LifecycleMachine.Input {
    var hooks = TypeHooks(One.self, searched: searched)
    for kind in kinds { hooks.add(.missing(One.self), for: kind) }
    return .hooksFound([hooks])
  }

  @Test func aStepWaitsForTheSearchesOfItsTransitionAndTheNextOneDoesNot() {
    var machine = machine()
    _ = give(found([], of: [.didFinishLaunching, .willEnterForeground]), &machine)
    #expect(machine.isIdle == true)
    let asked = give(.event(.init(.reload)), &machine)
    #expect(asked.searches == [.init(.shouldSaveState), .init(.shouldReload)])
    #expect(asked.starts.isEmpty && !machine.isIdle)
    // What comes meanwhile waits, too.
    #expect(give(.event(.init(.saveState)), &machine).searches.isEmpty)
    let kinds: [NotificationKind] = [.shouldSaveState, .shouldReload]
    let save = give(found(kinds, of: kinds), &machine).starts
    #expect(save.count == 1)
    let reload = give(.ended(save[0], .completed), &machine)
    #expect(reload.searches.isEmpty && reload.starts.count == 1)
    let next = give(.ended(reload.starts[0], .completed), &machine)
    #expect(next.searches.isEmpty && next.starts.count == 1)
  }

  @Test func theAnswerToAnotherSearchLetsAStepWait() {
    var machine = machine(.launching)
    #expect(!give(.launch { _ in }, &machine).searches.isEmpty)
    #expect(give(found([.shouldReload], of: [.shouldReload]), &machine).starts.isEmpty)
    #expect(machine.isIdle == false)
    let launch: [NotificationKind] = [.didFinishLaunching, .willEnterForeground]
    #expect(give(found(launch, of: launch), &machine).starts.count == 1)
  }

  @Test func aTerminationOvertakesAStepThatWaits() {
    var machine = machine()
    let launch: [NotificationKind] = [.didFinishLaunching, .willEnterForeground]
    _ = give(found([], of: launch), &machine)
    _ = give(.event(.init(.pressure)), &machine)
    #expect(give(.event(.init(.terminate)), &machine).starts.isEmpty)
    let all = NotificationKind.allCases
    let pause = give(found(all, of: all), &machine).starts
    #expect(pause.compactMap { machine.calls.find($0)?.step.kind } == [.didEnterBackground])
  }

  @Test func aCheckThatWaitsEndsWithTheTermination() {
    var machine = machine()
    let launch: [NotificationKind] = [.didFinishLaunching, .willEnterForeground]
    _ = give(found([], of: launch), &machine)
    _ = give(.event(.init(.checkHealth)), &machine)
    _ = give(.event(.init(.terminate)), &machine)
    let all = NotificationKind.allCases
    let begun = give(found(all, of: all), &machine).starts
    #expect(begun.compactMap { machine.calls.find($0)?.step.kind } == [.didEnterBackground])
  }

  @Test func theTypeOfAnotherObserverIsSearchedForToo() {
    var machine = machine()
    let all = NotificationKind.allCases
    _ = give(found([], of: all), &machine)
    let searches = add(2, Other.self, &machine)
    #expect(searches.contains(NotificationKind.didFinishLaunching))
    #expect(machine.hooks[0].searched == .all)
    #expect(machine.hooks[1].searched.isEmpty)
  }
}
