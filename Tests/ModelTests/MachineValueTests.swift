// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Testing

@testable import DaemonLifecycle

// The small values that the machine is made of, each by its own rules.

private func at(_ seconds: Int64) -> MonotonicTime {
  MonotonicTime(nanoseconds: seconds * 1_000_000_000)
}

private func subscriber(_ value: UInt64, slot: Int = 0) -> Subscriber {
  Subscriber(
    id: ObserverID(value: value, slot: slot), phase: .standard, name: .type(Int.self),
    receives: [ObjectIdentifier(ShouldSaveState.self), nil])
}

private func constants(
  _ step: LifecycleStep = .kind(.shouldSaveState), calls count: UInt64 = 2, concurrent: Bool = false
) -> Delivery.Constants {
  var calls = LifecycleAudience<Delivery.PlannedCall>()
  for value in 1...count {
    calls.append(
      .init(observer: ObserverID(value: value, slot: Int(value) - 1), hook: 0),
      together: concurrent && value > 1)
  }
  let plan = LifecycleRegistry.Plan(
    step: step, cause: LifecycleCause(.api), audience: LifecycleAudience(), transition: 1,
    kind: .save, isOfTermination: false)
  return Delivery.Constants(plan, calls: calls, post: nil, outer: nil, began: at(0))
}

@Suite struct SlotsTests {
  @Test func aHandleNamesItsElementUntilThatIsRemoved() {
    var slots = Slots<String>()
    let (first, second) = (slots.insert("a"), slots.insert("b"))
    slots[first] += "!"
    #expect(slots.find(first) == "a!" && slots.find(second) == "b" && slots.count == 2)
    #expect(slots.remove(first) == "a!")
    #expect(slots.find(first) == nil && !slots.contains(first) && slots.count == 1)
    #expect(slots.remove(first) == nil)
  }

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
      of: constants(), in: DeliveryID(value: 1), subscriber(1), began: at(0),
      time: CallTime(deadline: at(10), grace: .seconds(2)), progress: progress)
  }

  @Test func progressMovesForwardOnly() {
    var call = call()
    let didBegin = call.move(to: .begun)
    #expect(didBegin)
    #expect(!call.move(to: .driven) && !call.move(to: .begun))
    #expect(call.progress == .begun)
  }

  @Test func anAbandonedCallNeverBegins() {
    var call = call(.driven)
    call.cancel(at: at(10))
    #expect(call.next == at(12) && call.isCancelled && !call.isAbandoned)
    call.abandon()
    #expect(!call.move(to: .begun) && call.next == .distantFuture && call.isCancelled)
  }

  @Test func aBudgetTakesTimeAwayAndNeverGivesAny() {
    var call = call()
    call.limit(to: BudgetLimit(cancel: at(4), grace: .seconds(1), end: at(5)))
    #expect(call.deadline == at(4) && call.grace == .seconds(1))
    call.limit(to: BudgetLimit(cancel: at(9), grace: .seconds(3), end: at(12)))
    #expect(call.deadline == at(4) && call.grace == .seconds(1))
    call.cancel(at: at(4))
    call.limit(to: BudgetLimit(cancel: at(4), grace: .zero, end: at(4)))
    #expect(call.next == at(4))
  }

  @Test func aBudgetThatIsOverEndsItWhereItBegan() {
    var call = call()
    call.limit(to: BudgetLimit(cancel: at(-3), grace: .zero, end: at(-3)))
    #expect(call.deadline == call.began)
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
  @Test func oneAfterAnotherIsAGroupEach() {
    var delivery = Delivery(DeliveryID(value: 1), constants(calls: 3))
    #expect(delivery.waitingGroups == 3)
    #expect(delivery.takeGroup() == 0..<1 && delivery.takeGroup() == 1..<2)
    #expect(delivery.waitingGroups == 1 && delivery.waiting.count == 1)
    delivery.skipWaiting()
    #expect(delivery.takeGroup() == nil)
  }

  @Test func togetherIsOneGroup() {
    var delivery = Delivery(DeliveryID(value: 1), constants(calls: 3, concurrent: true))
    #expect(delivery.takeGroup() == 0..<3 && delivery.takeGroup() == nil)
  }

  @Test func oneNameHasOneEntryForAllThatAreGone() {
    var delivery = Delivery(DeliveryID(value: 1), constants())
    delivery.recordGone(.type(Int.self), 1)
    delivery.recordGone(.type(String.self), 2)
    delivery.recordGone(.type(Int.self), 1)
    #expect(delivery.entries.map(\.observer) == ["Int (×2)", "String (×2)"])
  }
}

@Suite struct CallsTests {
  private var calls = Calls()

  private mutating func begin(_ value: UInt64, in id: DeliveryID, deadline: Int64) -> CallID {
    calls.begin(
      Call(
        of: calls[id].constants, in: id, subscriber(value, slot: Int(value) - 1), began: at(0),
        time: CallTime(deadline: at(deadline), grace: .seconds(1))))
  }

  @Test mutating func theEarliestOfAllDeliveriesIsTheDeadline() {
    #expect(calls.deadline == .distantFuture)
    let (outer, nested) = (calls.open(constants()), calls.open(constants()))
    let late = begin(1, in: outer, deadline: 9)
    let early = begin(2, in: nested, deadline: 4)
    #expect(calls.deadline == at(4) && calls.due(in: nested, at: at(4)) == [early])
    #expect(calls.due(in: outer, at: at(4)).isEmpty)
    #expect(calls.end(early) != nil && calls.deadline == at(9))
    #expect(calls.end(early) == nil)
    calls.update(late) { $0.limit(to: BudgetLimit(cancel: at(2), grace: .zero, end: at(2))) }
    #expect(calls.deadline == at(2))
  }

  /// Ending one call moves another into its slot.
  @Test mutating func callsEndInAnyOrder() {
    let id = calls.open(constants(calls: 3, concurrent: true))
    let all = (1...3).map { begin($0, in: id, deadline: 9) }
    for call in [all[0], all[2], all[1]] {
      #expect(calls.end(call)?.constants === calls[id].constants)
      for (slot, left) in calls[id].running.enumerated() {
        #expect(calls.find(left)?.runningIndex == slot)
      }
    }
    #expect(calls[id].running.isEmpty && calls.count == 0 && calls.mayAdvance(id))
  }

  @Test mutating func anAbandonedCallKeepsItsObserverBusyUntilItEnds() {
    let id = calls.open(constants(.kind(.shouldReload)))
    let call = begin(1, in: id, deadline: 9)
    let observer = ObserverID(value: 1, slot: 0)
    #expect(!calls.isBusy(observer, for: constants(.kind(.shouldReload))))
    _ = calls.abandon(call)
    #expect(
      !calls.isCurrent(call) && calls[id].running.isEmpty && calls.unfinished[observer] == [call])
    #expect(calls.isBusy(observer, for: constants(.kind(.shouldReload))))
    // A save may stand beside it.
    #expect(!calls.isBusy(observer, for: constants(.kind(.shouldSaveState))))
    #expect(calls.end(call)?.isAbandoned == true)
    #expect(
      calls.unfinished.isEmpty && !calls.isBusy(observer, for: constants(.kind(.shouldReload))))
  }

  /// Where its last one was called is nothing to go by.
  @Test mutating func aDriverKnowsWhereItsCurrentCallIs() {
    let id = calls.open(constants())
    let (first, second) = (begin(1, in: id, deadline: 9), begin(2, in: id, deadline: 9))
    let driver = HookDriver(LifecycleCore(configuration: LifecycleConfiguration()))
    driver.note(.init(call: first, item: WorkItemToken(HookExecutor.Worker()), beacon: 1))
    #expect(driver.site(of: first)?.beacon == 1)
    #expect(driver.site(of: second) == nil)
  }

  @Test mutating func whatHasBegunIsNotWithdrawn() {
    let id = calls.open(constants())
    let call = begin(1, in: id, deadline: 9)
    let observer = ObserverID(value: 1, slot: 0)
    #expect(calls.pending(of: observer) == [call])
    let didBegin = calls.move(call, to: .begun)
    #expect(didBegin)
    #expect(calls.pending(of: observer).isEmpty)
  }
}

@Suite struct SubscribersTests {
  @Test func aSlotThatIsUsedAgainIsAnothersAndTheOldIdNamesNothing() {
    var subscribers = Subscribers()
    subscribers.insert(subscriber(1, slot: 3))
    #expect(subscribers[ObserverID(value: 1, slot: 3)] != nil)
    #expect(subscribers.remove(ObserverID(value: 1, slot: 3)) != nil)
    subscribers.insert(subscriber(2, slot: 3))
    #expect(subscribers[ObserverID(value: 1, slot: 3)] == nil)
    #expect(subscribers.remove(ObserverID(value: 1, slot: 3)) == nil)
    #expect(subscribers[ObserverID(value: 2, slot: 3)]?.id.value == 2)
  }

  @Test func aHookForTheTypeAndOneForAllAreTwoCalls() {
    let subscriber = subscriber(1)
    #expect(subscriber.hookCount(for: .kind(.shouldSaveState)) == 2)
    #expect(subscriber.hookCount(for: .kind(.shouldReload)) == 1)
    #expect(subscriber.hook(for: ObjectIdentifier(ShouldReload.self), .shouldReload) == nil)
    #expect(subscriber.wildcard == 1)
  }
}

@Suite struct StopTests {
  private let configuration: LifecycleConfiguration = {
    var configuration = LifecycleConfiguration(
      stopTimeout: .seconds(30), saveReserve: .seconds(5), exitGrace: .seconds(2))
    configuration.stopDelay = .seconds(3)
    return configuration
  }()
  private let event = LifecycleEvent(.terminate)
  private var stop = Stop()

  @Test mutating func aDrainHoldsTheEventBackUntilItsEnd() {
    #expect(stop.drain(event, configuration, at: at(0)) == .seconds(3))
    #expect(stop.isDraining && stop.deadline == at(3) && stop.start == nil)
    #expect(stop.endDrain() != nil && !stop.isDraining)
    #expect(stop.endDrain() == nil)
  }

  /// The drain is part of the stop: it does not make the stop longer.
  @Test mutating func theBudgetBeginsWithTheDrain() {
    _ = stop.drain(event, configuration, at: at(0))
    let end = stop.budget?.end
    _ = stop.endDrain()
    stop.begin(configuration, overtaking: .errand(.reload), at: at(3))
    #expect(stop.budget?.end == end && stop.start?.time == at(3))
  }

  @Test mutating func lessThatTheServiceManagerAllowsCutsTheDrain() {
    _ = stop.drain(event, configuration, at: at(0))
    stop.allow(.seconds(4), configuration)
    #expect(stop.deadline < at(3))
  }

  @Test mutating func theExitIsExpectedOnlyByRunAndOnlyOnce() {
    stop.begin(configuration, overtaking: nil, at: at(0))
    let exit = LifecycleExit(
      code: 0, cause: LifecycleCause(.api),
      report: LifecycleReport(cause: LifecycleCause(.api), entries: []), failedLaunch: nil,
      error: nil)
    #expect(stop.end(exit) && !stop.end(exit))
    stop.expectExit(configuration, at: at(5))
    #expect(stop.deadline == .distantFuture)
    stop.runWaits()
    stop.expectExit(configuration, at: at(5))
    #expect(stop.deadline == at(7) && !stop.isOverdue(at: at(6)))
    #expect(stop.isOverdue(at: at(7)) && !stop.isOverdue(at: at(8)))
  }

  @Test mutating func aSecondSignalLeavesTheReserveAndNoMoreTimeIsGiven() {
    stop.begin(configuration, overtaking: nil, at: at(0))
    stop.expedite(at: at(1))
    #expect(stop.budget?.end == at(6))
    #expect(!stop.extend(by: .seconds(10), at: at(5)) && stop.budget?.end == at(6))
  }

  /// Found by a simulated life: systemd allows less than what has passed, and a hook asks for more.
  @Test mutating func whereNothingIsLeftMoreTimeCountsFromNow() throws {
    stop.begin(configuration, overtaking: nil, at: at(0))
    let over = try #require(stop.budget?.end).advanced(by: .seconds(2))
    let isGiven = stop.extend(by: .seconds(10), at: over)
    // And the reserve of five.
    #expect(isGiven && stop.budget?.end == over.advanced(by: .seconds(15)))
  }
}

@Suite struct SleepTests {
  @Test func halfOfWhatLogindWaitsIsTheBudgetOfOneSuspend() {
    var sleep = Sleep()
    sleep.delay(until: at(4))
    sleep.suspendBegins(at: at(0))
    #expect(
      sleep.budget?.end == at(4) && sleep.budget?.end(of: .kind(.didEnterBackground)) == at(2))
    sleep.suspendEnded()
    sleep.suspendBegins(at: at(1))
    #expect(sleep.budget?.end == nil)
  }

  @Test func aDelayThatIsOverIsNoBudget() {
    var sleep = Sleep()
    sleep.delay(until: at(4))
    sleep.suspendBegins(at: at(4))
    #expect(sleep.budget?.end == nil)
  }

  @Test func anAnnouncedSleepIsAnsweredOnce() {
    var sleep = Sleep()
    let wasAwaited = sleep.takeAwaited()
    #expect(!wasAwaited)
    sleep.announce()
    sleep.announce()
    #expect(sleep.takeAwaited() && !sleep.takeAwaited())
  }

  @Test func whoIsPostponedIsSoOnceAndUntilItIsTaken() {
    var sleep = Sleep()
    let (one, two) = (ObserverID(value: 1), ObserverID(value: 2))
    #expect(sleep.postpone(one) && !sleep.postpone(one) && sleep.postpone(two))
    sleep.forget(two)
    #expect(sleep.takePostponed() == [one] && sleep.postponed.isEmpty)
  }
}

@Suite struct HealthValueTests {
  private var health = Health(period: .seconds(8))

  @Test mutating func allMustAnswerAndLateAnswersOfAnotherRoundDoNotCount() {
    health.arm(at: at(0))
    let round = health.begin(at: at(0), asksMainActor: true)!
    #expect(health.begin(at: at(0), asksMainActor: true) == nil)
    #expect(health.receive(.pool, round: round, at: at(1)) == nil)
    #expect(health.receive(.mainActor, round: round + 1, at: at(1)) == nil)
    #expect(health.observersAnswered([], at: at(1)) == nil)
    guard case .healthy = health.receive(.mainActor, round: round, at: at(1)) else {
      Issue.record("all have answered")
      return
    }
    #expect(!health.isChecking)
  }

  /// Where no thread was to be had for it, the next tick asks.
  @Test mutating func theExecutorsAreAskedUntilTheyHaveBeen() {
    let round = health.begin(at: at(0), asksMainActor: false)!
    #expect(health.unasked == round)
    health.asked(round + 1)
    #expect(health.unasked == round)
    health.asked(round)
    #expect(health.unasked == nil)
  }

  @Test mutating func aProblemIsTheVerdict() {
    let round = health.begin(at: at(0), asksMainActor: false)!
    _ = health.receive(.pool, round: round, at: at(0))
    guard case .unhealthy(let text) = health.observersAnswered(["ill"], at: at(0)) else {
      Issue.record("an observer is ill")
      return
    }
    #expect(text == "ill")
  }

  @Test mutating func silenceIsToldOfOnceAndNamesWhoIsSilent() {
    _ = health.begin(at: at(0), asksMainActor: false)
    #expect(health.deadline == at(2) && health.timePassed(at: at(1)) == nil)
    guard case .unhealthy(let text) = health.timePassed(at: at(2)) else {
      Issue.record("nobody answers")
      return
    }
    #expect(text.contains("Swift's global executor") && text.hasSuffix("do not answer"))
    #expect(health.silence() == nil && health.deadline == .distantFuture)
  }

  /// A clock that is late itself says nothing of those who are asked.
  @Test mutating func aLateClockIsPatientOnce() {
    _ = health.begin(at: at(0), asksMainActor: false)
    #expect(health.timePassed(at: at(7)) == nil && health.deadline == at(9))
    #expect(health.timePassed(at: at(9)) != nil)
  }

  @Test mutating func aStallIsForgivenOnlyToWhoWasWell() {
    health.arm(at: at(0))
    let isForgiven = health.forgive(.seconds(20), at: at(21))
    #expect(isForgiven)
    let isForgivenAgain = health.forgive(.zero, at: at(40))
    #expect(!isForgivenAgain)
  }
}

@Suite struct EffectsTests {
  private static let kinds: [@Sendable (inout Effects) -> Void] = [
    { $0.exitsWith = 143 }, { $0.removed = [ObserverID(value: 1)] },
    { $0.withdrawn = [call] }, { $0.publish(.recovered) }, { $0.healthRound = 1 },
    { $0.cancelsBody = true }, { $0.cancels = [call] }, { $0.released = [1] },
    { $0.isOverdue = true },
  ]
  private static let call: CallID = {
    var calls = Calls()
    let time = CallTime(deadline: at(1), grace: .zero)
    let id = calls.open(constants())
    return calls.begin(Call(of: constants(), in: id, subscriber(1), began: at(0), time: time))
  }()

  @Test func eachKindAloneIsMoreThanAStart() {
    for kind in Self.kinds {
      var effects = Effects()
      kind(&effects)
      let hasMore = effects.hasMoreThanStarts
      effects.removeAll()
      let hasMoreAfterwards = effects.hasMoreThanStarts
      #expect(hasMore && !hasMoreAfterwards)
    }
  }

  @Test func startsAreThoseOfOneInput() {
    var effects = Effects()
    effects.starts.append(
      .init(call: Self.call, observer: ObserverID(value: 1), hook: 0, delivery: constants()))
    let hasMore = effects.hasMoreThanStarts
    effects.removeAll()
    let starts = effects.starts
    #expect(!hasMore && starts.isEmpty)
  }
}

@Suite struct BodyTests {
  @Test func itIsCancelledOnceAndOnlyWhileItRuns() {
    var body = Body.none
    let wasCancelled = body.cancel(at: at(1))
    #expect(!wasCancelled)
    body = .running(cancelled: nil)
    #expect(body.isRunning && body.cancel(at: at(1)) && !body.cancel(at: at(2)))
    guard case .running(let time) = body, time == at(1) else {
      Issue.record("cancelled at another time")
      return
    }
    body = .ended(DaemonLifecycle.Failure(CancellationError()))
    #expect(!body.isRunning && body.failure?.error is CancellationError && !body.cancel(at: at(3)))
  }
}

extension Body {
  fileprivate var isRunning: Bool { if case .running = self { true } else { false } }
}
