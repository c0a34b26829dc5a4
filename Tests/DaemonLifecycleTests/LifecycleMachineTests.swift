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
