// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization
import Testing

@testable import DaemonLifecycle

// The small values that the machine is made of, each by its own rules.

private func member(_ value: UInt64, slot: Int = 0) -> Member {
  Member(
    id: ObserverID(value: value, slot: slot), phase: .standard, name: .type(Int.self),
    receives: [ObjectIdentifier(ShouldSaveState.self), nil])
}

/// - Parameter together: For each call whether it is one group with the call before it.
private func constants(together: [Bool] = [false, false]) -> Delivery.Constants {
  let calls = together.enumerated().map { index, isTogether in
    Delivery.PlannedCall(
      observer: ObserverID(value: UInt64(index) + 1, slot: index), hook: 0, isTogether: isTogether)
  }
  return Delivery.Constants(
    .kind(.shouldSaveState), LifecycleCause(.api), calls: calls, outer: nil, isOfTermination: false,
    began: at(0))
}

private func transition(_ kind: LifecycleTransition) -> Transition {
  Transition(kind, LifecycleCause(.api), [])
}

@Suite struct SlotsTests {
  @Test func aPlaceIsUsedAgainAndTheOldHandleStaysStale() {
    var slots = Slots<Int>()
    let old = slots.insert(1)
    slots.remove(old)
    let new = slots.insert(2)
    #expect(new.index == old.index && new != old)
    #expect(slots.find(old) == nil && slots.find(new) == 2)
  }
}

@Suite struct CallTests {
  private func call(_ progress: Call.Progress = .enqueued) -> Call {
    Call(
      of: constants(), in: DeliveryID(value: 1), member(1), began: at(0),
      time: CallTime(deadline: at(10), grace: .seconds(2)), progress: progress)
  }

  @Test func anAbandonedCallNeverBegins() {
    var call = call(.entering)
    call.cancel(at: at(10))
    #expect(call.next == at(12) && call.isCancelled && !call.isAbandoned)
    call.abandon()
    #expect(!call.move(to: .begun) && call.next == .distantFuture && call.isCancelled)
  }

  @Test func itBeginsOnce() {
    var call = call(.entering)
    let moves = [Call.Progress.entering, .begun, .begun, .entering].map { call.move(to: $0) }
    #expect(moves == [false, true, false, false])
  }

  @Test func aBudgetTakesTimeAwayAndNeverGivesAny() {
    var call = call()
    call.limit(to: CallTime(deadline: at(4), grace: .seconds(1)))
    #expect(call.deadline == at(4) && call.grace == .seconds(1))
    call.limit(to: CallTime(deadline: at(9), grace: .seconds(3)))
    #expect(call.deadline == at(4) && call.grace == .seconds(1))
    call.cancel(at: at(4))
    call.limit(to: CallTime(deadline: at(4), grace: .zero))
    #expect(call.next == at(4))
  }

  @Test func moreTimeTakesNoneAwayAndTheGraceEndsWithTheBudget() {
    var call = call()
    call.extend(to: at(5), grace: nil)
    #expect(call.deadline == at(10) && call.grace == .seconds(2))
    call.extend(to: at(20), grace: .seconds(1))
    #expect(call.deadline == at(20) && call.grace == .seconds(1))
  }
}

@Suite struct DeliveryValueTests {
  @Test func groupsFollowEachOtherWhateverTheyAre() {
    let together = [false, false, true, true, false, false, true, false]
    var delivery = Delivery(
      DeliveryID(value: 1), constants(together: together))
    var groups: [Range<Int>] = []
    while let group = delivery.takeGroup(all: false, at: at(0)) { groups.append(group) }
    #expect(groups == [0..<1, 1..<4, 4..<5, 5..<7, 7..<8])
    delivery = Delivery(DeliveryID(value: 2), constants(together: together))
    #expect(delivery.takeGroup(all: false, at: at(0)) != nil && delivery.waiting.count == 7)
    #expect(delivery.takeGroup(all: true, at: at(0)) == 1..<8)
    delivery = Delivery(DeliveryID(value: 3), constants(together: together))
    delivery.skipWaiting()
    #expect(delivery.takeGroup(all: false, at: at(0)) == nil)
  }

  /// Registrations are numbered from 1.
  @Test func whatIsNoObserversHasNoRegistration() {
    var delivery = Delivery(DeliveryID(value: 1), constants())
    delivery.record(.completed, of: .given("a"), nil, began: at(1))
    delivery.record(.completed, of: .type(Int.self), ObserverID(value: 7), began: at(1))
    #expect(delivery.entries.map(\.registration) == [0, 7])
  }
}

@Suite struct TransitionTests {
  /// A pause that a termination overtakes is named in the exit, and so is one for the machine's sleep.
  @Test func aSuspendIsAPauseToo() {
    func isPause(_ kind: LifecycleTransition) -> Bool { transition(kind).isPause }
    #expect(isPause(.background) && isPause(.sleep))
    #expect(!isPause(.foreground) && !isPause(.reload) && !isPause(.termination))
  }
}

@Suite struct StatusNoteTests {
  /// What the daemon says of itself comes first, then what happened last.
  @Test func notesHaveAnOrder() {
    let notes: [StatusNote] = [
      .signals, .watchedUnit, .delayLock, .health, .work("b", 1), .work("a", 1), .problem,
      .reload, .daemon,
    ]
    #expect(
      notes.sorted() == [
        .daemon, .reload, .problem, .work("a", 1), .work("b", 1), .health, .delayLock,
        .watchedUnit, .signals,
      ])
  }
}

@Suite struct ProgressTests {
  @Test(arguments: [
    (0, ""), (1, ", waiting for a"), (3, ", waiting for a, b, c"),
    (4, ", waiting for a, b, c and 1 more"), (5, ", waiting for a, b, c and 2 more"),
  ])
  func threeAreNamed(count: Int, words: String) {
    let names = ["a", "b", "c", "d", "e"].prefix(count).map { ObserverName.given($0) }
    let progress = LifecycleProgress(
      transition: .termination, done: 3, total: 9, waitingFor: names, elapsed: .seconds(2))
    #expect(progress.description == "stopping: 3 of 9 done\(words), 2 s")
  }
}

@Suite struct StatusTextTests {
  private var status = StatusText()

  @Test mutating func theLastOfASecondIsPublishedAndOnlyWhatIsNew() {
    status.set("a", at: at(5))
    #expect(status.deadline == at(5) && status.take(at: at(4)) == .none)
    #expect(status.take(at: at(5)) == .some("a"))
    #expect(status.deadline == .distantFuture && status.take(at: at(9)) == .none)
    status.set("b", at: at(5))
    status.set("c", at: at(5))
    #expect(status.deadline == at(6) && status.take(at: at(5)) == .none)
    status.set("a", at: at(5))
    #expect(status.deadline == .distantFuture)
    status.set("d", at: at(9))
    #expect(status.deadline == at(9) && status.take(at: at(9)) == .some("d"))
    status.set(nil, at: at(20))
    #expect(status.take(at: at(20)) == .some(nil))
  }

  /// The status of a pause must not have the text of before.
  @Test mutating func theEndOfATransitionDoesNotWait() {
    #expect(status.take(at: at(5), isDue: true) == .none)
    status.set("a", at: at(5))
    #expect(status.take(at: at(5)) == .some("a"))
    status.set("b", at: at(5))
    #expect(status.take(at: at(5)) == .none)
    #expect(status.take(at: at(5), isDue: true) == .some("b"))
    #expect(status.take(at: at(5), isDue: true) == .none)
  }

  @Test mutating func itIsOneLineOfAtMost200Bytes() {
    func shown(_ text: String) -> String? {
      var status = StatusText()
      status.set(text, at: at(0))
      return status.text
    }
    let long = String(repeating: "x", count: 200)
    #expect(shown(long) == long && shown(long + "y") == long)
    // No character is cut in two.
    #expect(shown(long.dropLast() + "é") == String(long.dropLast()))
    #expect(shown("a\nb")?.contains("\n") == false)
  }
}

@Suite struct MemberTests {
  /// Each in its turn, and then again; free slots too.
  @Test func allAreCandidates() {
    var members = LifecycleMembers()
    #expect(members.candidate() == nil)
    for value in 1...3 as ClosedRange<UInt64> {
      members.add(member(value, slot: Int(value) - 1))
    }
    _ = members.remove(ObserverID(value: 2, slot: 1))
    let values = (0..<6).map { _ in members.candidate()?.id.value }
    #expect(values == [nil, 3, 1, nil, 3, 1])
  }

  /// Those of a concurrent phase begin together, and none follows itself.
  @Test(arguments: [true, false]) func anObserverFollowsThoseBeforeIt(_ isConcurrent: Bool) {
    let observers = [(1, 0), (2, 1), (3, 1)].map { value, order in
      Member(
        id: ObserverID(value: value),
        phase: LifecyclePhase(order: order, isConcurrent: isConcurrent),
        name: .type(Int.self), receives: [])
    }
    let follows = observers.map { observer in observers.map { observer.follows($0) } }
    #expect(
      follows == [[false, false, false], [true, false, false], [true, !isConcurrent, false]])
  }

  @Test func aHookIsForItsTypeOrForAllButHealthChecks() {
    let member = member(1)
    func hook(_ kind: NotificationKind) -> Int? {
      member.hook(for: ObjectIdentifier(kind.row.type), .kind(kind))
    }
    #expect(hook(.shouldSaveState) == 0)
    #expect(hook(.shouldReload) == 1)
    #expect(hook(.checkHealth) == nil)
  }
}

@Suite struct StopTests {
  private let policy = LifecycleMachine.Policy(
    configuration: LifecycleConfiguration(
      stopTimeout: .seconds(30), saveReserve: .seconds(5), exitGrace: .seconds(2),
      stopDelay: .seconds(3)))
  private let event = LifecycleEvent(.terminate)
  private var stop = Stop()

  @Test mutating func aDrainHoldsTheEventBackUntilItsEnd() {
    #expect(stop.drain(event, policy, at: at(0)) == .seconds(3))
    #expect(stop.isDraining && stop.deadline == at(3) && stop.start == nil)
    #expect(stop.endDrain() != nil && !stop.isDraining)
    #expect(stop.endDrain() == nil)
  }

  @Test mutating func whereThereIsNoTimeThereIsNoDrain() {
    stop.allow(.zero, policy, at: at(0))
    #expect(stop.drain(event, policy, at: at(0)) == .zero)
    #expect(!stop.isDraining && stop.budget?.end == nil)
  }

  /// Not one that had ended before.
  @Test(arguments: [(4, false), (5, true)])
  func aPauseThatTheStopHasCutOffIsKept(ended: Int64, isKept: Bool) {
    var stop = Stop()
    stop.begin(policy, .init(), at: at(5))
    let entry = LifecycleReport.Entry(
      notification: DidEnterBackground.self, outcome: .timedOut, duration: .seconds(1),
      name: .given("a"), began: at(ended - 1), registration: 1)
    let pause = LifecycleReport(cause: LifecycleCause(.api), entries: [entry])
    stop.noteOvertaken(transition(.background), pause, at: at(5))
    let report = stop.overtakenPause
    #expect((report != nil) == isKept)
  }

  @Test mutating func aShorterStopHasAShorterGrace() {
    stop.begin(policy, .init(), at: at(0))
    #expect(stop.grace(policy) == .seconds(2))
    // A tenth is kept, since the service manager's clock started before: 1.8 s.
    stop.allow(.seconds(2), policy, at: at(0))
    #expect(stop.grace(policy) == .milliseconds(900))
    // And half of the rest is for the save.
    let pause = stop.budget?.endBeforeSaves
    #expect(pause == MonotonicTime(nanoseconds: 450_000_000))
  }

  /// The service manager was told of it.
  @Test mutating func timeThatWasGivenIsNotTakenBack() throws {
    stop.begin(policy, .init(), at: at(0))
    stop.extend(by: .seconds(10), at: at(1))
    let end = try #require(stop.budget?.end)
    stop.allow(.seconds(5), policy, at: at(1))
    #expect(stop.budget?.end == end)
  }

  @Test mutating func lessThatTheServiceManagerAllowsCutsTheDrain() {
    _ = stop.drain(event, policy, at: at(0))
    stop.allow(.seconds(4), policy, at: at(0))
    #expect(stop.deadline < at(3))
  }

  /// 4 s: a tenth is kept, half of the rest is for the exit, and half of that for the saves.
  @Test(arguments: [(0, 1_800), (1, 1_900), (20, 20_900)])
  func aTimeThatIsOverLeavesTheReserve(now: Int64, end: Int64) throws {
    var stop = Stop()
    stop.allow(.seconds(90), policy, at: at(0))
    stop.begin(policy, .init(), at: at(0))
    stop.allow(.seconds(4), policy, at: at(now))
    #expect(stop.budget?.end == MonotonicTime(nanoseconds: end * 1_000_000))
    let pause = stop.budget?.endBeforeSaves
    #expect(try #require(pause) > at(now))
  }

  /// Found by a simulated life.
  @Test mutating func afterASecondSignalALimitLeavesTheSavesAllThereIs() {
    stop.begin(policy, .init(), at: at(0))
    stop.expedite(at: at(1))
    stop.allow(.seconds(4), policy, at: at(1))
    let pause = stop.budget?.endBeforeSaves
    #expect(pause == at(1))
  }

  /// What had begun had to end first; nobody was slow who took less than a millisecond.
  @Test(arguments: [(999_999, 0), (1_000_000, 1)])
  func aWaitOfAMillisecondIsInTheReport(nanoseconds: Int64, preludes: Int) {
    var stop = Stop()
    stop.begin(policy, .init(), at: at(0))
    let reload = LifecycleReport(cause: LifecycleCause(.api), entries: [])
    stop.noteOvertaken(transition(.reload), reload, at: MonotonicTime(nanoseconds: nanoseconds))
    #expect(stop.span(of: transition(.termination), to: at(1)).prelude.count == preludes)
  }

  /// Found by a simulated life: systemd allows less than what has passed, and a hook asks for more.
  @Test(arguments: [0, 2]) func whereNothingIsLeftMoreTimeCountsFromNow(late: Int) throws {
    var stop = Stop()
    stop.begin(policy, .init(), at: at(0))
    let over = try #require(stop.budget?.end).advanced(by: .seconds(late))
    stop.extend(by: .seconds(10), at: over)
    // And the reserve of five.
    #expect(stop.budget?.end == over.advanced(by: .seconds(15)))
  }
}

@Suite struct HealthValueTests {
  private var health = Health(period: .seconds(8))

  @Test mutating func allMustAnswerAndLateAnswersOfAnotherRoundDoNotCount() {
    health.arm(at: at(0))
    #expect(health.receive(.mainActor, at: at(0)) == nil)
    let round = health.begin(at: at(0))!
    #expect(health.begin(at: at(0)) == nil)
    #expect(health.receive(.pool(round: round + 1), at: at(1)) == nil)
    #expect(health.receive(.mainActor, at: at(1)) == nil)
    #expect(health.observersAnswered([], at: at(1)) == nil)
    guard case .healthy = health.receive(.pool(round: round), at: at(1)) else {
      Issue.record("all have answered")
      return
    }
    #expect(!health.isChecking)
  }

  /// Where nothing runs its queue, nothing waits for it, and one question at most is left there.
  @Test mutating func theMainActorIsAskedOnceAtATimeAndWaitedForOnceItHasResponded() {
    let first = health.begin(at: at(0))!
    #expect(!health.isMainActorAsked)
    health.asked(first)
    #expect(health.isMainActorAsked)
    #expect(health.observersAnswered([], at: at(0)) == nil)
    #expect(health.receive(.pool(round: first), at: at(0)) != nil)
    #expect(health.receive(.mainActor, at: at(1)) == nil && !health.isMainActorAsked)
    let second = health.begin(at: at(2))!
    _ = health.observersAnswered([], at: at(2))
    #expect(health.receive(.pool(round: second), at: at(2)) == nil)
    #expect(health.receive(.mainActor, at: at(3)) != nil)
  }

  @Test mutating func aProblemIsTheVerdict() {
    let round = health.begin(at: at(0))!
    _ = health.receive(.pool(round: round), at: at(0))
    guard case .unhealthy(let text) = health.observersAnswered(["ill"], at: at(0)) else {
      Issue.record("an observer is ill")
      return
    }
    #expect(text == "ill")
  }

  @Test mutating func silenceIsToldOfOnceAndNamesWhoIsSilent() {
    _ = health.begin(at: at(0))
    #expect(health.deadline == at(2) && health.timePassed(at: at(1)) == nil)
    guard case .unhealthy(let text) = health.timePassed(at: at(2)) else {
      Issue.record("nobody answers")
      return
    }
    #expect(text.contains("Swift's global executor") && text.hasSuffix("do not answer"))
    #expect(health.timePassed(at: at(3)) == nil && health.deadline == .distantFuture)
  }

  /// Late by half of its patience it still says who is silent, and by more it does not.
  @Test(arguments: [(2000, true), (2900, true), (3000, true), (3001, false)])
  func aClockMayBeLateByHalfOfItsPatience(milliseconds: Int64, isSaid: Bool) {
    var health = health
    _ = health.begin(at: at(0))
    let verdict = health.timePassed(at: MonotonicTime(nanoseconds: milliseconds * 1_000_000))
    // It is patient once, however late it is then.
    #expect((verdict != nil) == isSaid && (health.timePassed(at: at(60)) != nil) == !isSaid)
  }

  /// What the service manager waits for is the period, since READY or the last time when all was well.
  @Test mutating func aWholePeriodWithoutAPingIsNotForgiven() {
    health.arm(at: at(100))
    let isForgiven = [Int64(107), 108].map { health.forgive(.zero, at: at($0)) }
    #expect(isForgiven == [true, false])
    let round = health.begin(at: at(110))!
    _ = health.observersAnswered([], at: at(110))
    _ = health.receive(.pool(round: round), at: at(110))
    let isWellAgain = health.forgive(.zero, at: at(117))
    #expect(isWellAgain)
    // Nor did the process that did not run.
    let isStallForgiven = health.forgive(.seconds(5), at: at(122))
    #expect(isStallForgiven)
    var unwatched = Health(period: nil)
    unwatched.arm(at: at(0))
    let isWatched = unwatched.forgive(.seconds(1), at: at(0))
    #expect(!isWatched)
  }
}

@Suite struct RecoveryTests {
  private var health = Health(period: .seconds(8))

  init() { health.arm(at: at(0), countsRestarts: true) }

  /// Once, after a minute of health: systemd counts restarts from nought again.
  @Test mutating func aMinuteOfHealthIsARecovery() {
    #expect(health.deadline == at(60) && health.timePassed(at: at(59)) == nil)
    guard case .recovered = health.timePassed(at: at(60)) else {
      Issue.record("a minute has passed")
      return
    }
    #expect(health.deadline == .distantFuture && health.timePassed(at: at(120)) == nil)
  }

  @Test mutating func aCheckThatFailsBeginsTheMinuteAnew() {
    let round = health.begin(at: at(40))!
    _ = health.receive(.pool(round: round), at: at(40))
    _ = health.observersAnswered(["ill"], at: at(40))
    #expect(health.deadline == at(100))
  }

  /// Though all is well in the end.
  @Test mutating func anAnswerThatWasMissedBeginsTheMinuteAnew() {
    let round = health.begin(at: at(50))!
    _ = health.observersAnswered([], at: at(50))
    #expect(health.timePassed(at: at(52)) != nil)
    _ = health.receive(.pool(round: round), at: at(55))
    #expect(health.deadline == at(115))
  }

  /// Nobody knows how it ends.
  @Test mutating func aCheckUnderWayIsNoRecovery() {
    _ = health.begin(at: at(57))
    _ = health.timePassed(at: at(59))
    #expect(health.timePassed(at: at(60)) == nil && health.deadline == at(120))
  }

  @Test mutating func aStopIsNone() {
    health.end()
    #expect(health.deadline == .distantFuture)
  }

  @Test func whoHasNoServiceManagerHasNoTimer() {
    for hasServiceManager in [true, false] {
      let daemon = DaemonUnderTest(state: .launching, hasServiceManager: hasServiceManager)
      daemon.give(.launch { _ in })
      let deadline = daemon.machine.deadline
      #expect(deadline == (hasServiceManager ? at(60) : .distantFuture))
    }
  }
}

@Suite struct EffectsTests {
  private static let kinds: [@Sendable (inout Effects) -> Void] = [
    { $0.exitsWith = 143 }, { $0.removed = [member(1)] }, { $0.healthRound = 1 },
    { $0.stalled = "work" },
    { $0.works = [(ObserverID(value: 1), nil, .finish(run: 1))] }, { $0.cancels = [member(1)] },
    { $0.isOverdue = true },
  ]

  @Test func eachKindAloneIsRareAndIsTakenWhole() {
    for kind in Self.kinds {
      var effects = Effects()
      kind(&effects)
      let hasRare = effects.hasRare
      let hadRare = effects.takeRare().hasRare
      let hasRareAfterwards = effects.hasRare
      #expect(hasRare && hadRare && !hasRareAfterwards)
    }
  }

  /// Until somebody takes them.
  @Test func callsAndMessagesLast() {
    var calls = Calls()
    let time = CallTime(deadline: at(1), grace: .zero)
    let id = calls.open(constants())
    var effects = Effects()
    effects.announces = false
    effects.publish(.recovered)
    effects.starts.append(
      calls.begin(Call(of: constants(), in: id, member(1), began: at(0), time: time)))
    let hasRare = effects.hasRare
    let taken = effects.takeRare()
    #expect(!hasRare && effects.starts.count == 1 && effects.messages.count == 1)
    #expect(!effects.announces && taken.starts.isEmpty && taken.messages.isEmpty)
  }
}
