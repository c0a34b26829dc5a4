// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Testing

@testable import DaemonLifecycle

/// What the machine's parts do together, step by step: single rules that a simulated life seldom comes to.
@Suite struct LifecycleMachineTests {
  private struct Note: CustomNotification {}

  private static let observer = Subscriber(
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

  private func at(_ seconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: seconds * 1_000_000_000)
  }

  /// Takes an input in, and begins the hooks that it starts.
  private func starts(
    _ input: LifecycleMachine.Input, _ machine: inout LifecycleMachine, at seconds: Int64 = 0
  ) -> [CallID] {
    var effects = Effects()
    machine.handle(input, at: at(seconds), &effects)
    let calls = effects.starts.map(\.call)
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
    _ input: LifecycleMachine.Input, _ machine: inout LifecycleMachine
  ) -> [LifecycleFact] {
    var effects = Effects()
    machine.handle(input, at: at(0), &effects)
    for start in effects.starts { _ = machine.move(start.call, to: .begun) }
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
    let nested = try #require(starts(.post(Note(), PostID(value: 1), inside: save), &machine).first)
    let end = machine.stop.budget?.end
    _ = starts(.extend(nested, by: .seconds(60)), &machine)
    #expect(machine.stop.budget?.end == end)
    #expect(machine.calls.find(nested)?.deadline == machine.calls.find(save)?.deadline)
  }

  /// logind's limit is for the sleep that it was read for.
  @Test func aSleepThatWasCalledOffLeavesNoLimitToTheNext() {
    var machine = machine()
    _ = starts(.sleepDelay(.seconds(5)), &machine)
    _ = starts(.event(.init(.resume)), &machine)
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

  // MARK: Newcomers

  private func newcomer(_ types: [any LifecycleNotification.Type]) -> Subscriber {
    Subscriber(
      id: ObserverID(value: 2, slot: 1), phase: .standard, name: .type(String.self),
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
      .add(newcomer([ShouldSaveState.self, DidEnterBackground.self])), at: at(0), &effects)
    #expect(effects.messages.isEmpty && effects.starts.isEmpty)
    #expect(progress(machine, 2)?.reachedState == state)
    let calls = starts(.event(.init(.terminate)), &machine)
    #expect(calls.count == 1)
  }

  /// As one that was there before: it is where it would be had it waited for its turn.
  @Test(arguments: [LifecycleState.foreground, .background])
  func aNewcomerIsWhereItsTurnWouldHaveLeftIt(_ state: LifecycleState) {
    var skips = LifecycleMachine(.init(configuration: .init()), state: state)
    _ = starts(.add(newcomer([ShouldSaveState.self])), &skips)
    var waits = LifecycleMachine(.init(configuration: .init()), state: state)
    _ = starts(.hold, &waits)
    _ = starts(.add(newcomer([ShouldSaveState.self])), &waits)
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

  /// The report of a newcomer's turn names those that have gone away, if there are any.
  @Test func departuresAreReportedAsBefore() {
    var machine = machine()
    _ = starts(.gone([ObserverID(value: 1, slot: 0)]), &machine)
    var effects = Effects()
    machine.handle(.add(newcomer([ShouldSaveState.self])), at: at(0), &effects)
    let entries = effects.messages.flatMap { message in
      if case .reported(let report, _) = message { report.entries } else { [] }
    }
    #expect(entries.count == 1)
  }

  @Test func whoAsksForAHealthCheckIsItsCause() {
    var machine = machine()
    var effects = Effects()
    machine.handle(
      .checkHealth(LifecycleCause(.api), asksMainActor: false), at: at(0), &effects)
    let causes = effects.messages.compactMap { message in
      if case .announced(_, let cause) = message { "\(cause)" } else { nil }
    }
    #expect(causes == ["\(LifecycleCause(.api))"])
  }

  /// Each costs context switches, in a daemon that has nothing else to do.
  @Test func everySecondTickAsksSwiftsExecutors() {
    let policy = LifecycleMachine.Policy(configuration: .init(), watchdogPeriod: .seconds(8))
    var machine = LifecycleMachine(policy, state: .foreground)
    var effects = Effects()
    machine.handle(.armed, at: at(0), &effects)
    var (asked, pings) = ([Bool](), 0)
    for (tick, stall) in [0, 0, 0, 0, 5].enumerated() {
      let now = at(Int64(3 * tick))
      machine.handle(
        .watchdogTick(stall: .seconds(stall), asksMainActor: true), at: now, &effects)
      asked.append(effects.healthRound != nil)
      if let round = effects.healthRound {
        machine.handle(.healthAsked(round: round), at: now, &effects)
        machine.handle(.healthAnswer(.pool, round: round), at: now, &effects)
        machine.handle(.healthAnswer(.mainActor, round: round), at: now, &effects)
      }
      for case .fact(.healthy) in effects.messages { pings += 1 }
      effects.removeAll()
    }
    // The last comes after a stall from outside, and is forgiven at once.
    #expect(asked == [true, false, true, false, true])
    #expect(pings == 6)
  }
}
