// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import DaemonLifecycle

/// The registry's single rules, which a simulated life seldom comes to, or no invariant speaks of.
@Suite struct LifecycleRegistryTests {
  private let first = ObserverID(value: 1)
  private let second = ObserverID(value: 2, slot: 1)

  /// A step that was delivered.
  private struct Delivered {
    let step: LifecycleStep
    let cause: LifecycleCause
    let members: [ObserverID]
    let kind: LifecycleTransition?
    /// Whether its transition has ended with it.
    let isLast: Bool
  }

  /// Delivers the next step, and ends a transition that is over.
  @discardableResult private func deliverNext(
    _ registry: inout LifecycleRegistry, reaches: Bool = true
  ) -> Delivered? {
    guard let next = registry.next() else { return nil }
    let kind = registry.transition?.kind
    for id in next.members where reaches { registry.reached(id, next.step.change) }
    registry.finish(next.step)
    return Delivered(
      step: next.step, cause: next.cause, members: next.members, kind: kind,
      isLast: registry.endTransition() != nil)
  }

  /// Delivers all that there is to be delivered; the steps.
  @discardableResult private func deliver(
    _ registry: inout LifecycleRegistry, reaches: Bool = true
  ) -> [Delivered] {
    var steps: [Delivered] = []
    while let step = deliverNext(&registry, reaches: reaches) { steps.append(step) }
    return steps
  }

  private func receive(_ kind: LifecycleRequest, _ registry: inout LifecycleRegistry) {
    let state = registry.state
    #expect(registry.receive(LifecycleEvent(kind)) == .none)
    // It changes with the steps, and not before.
    #expect(registry.state == state)
  }

  /// Of these members, in the foreground.
  private func launched(_ ids: ObserverID...) -> LifecycleRegistry {
    var registry = LifecycleRegistry()
    for id in ids { registry.members.add(id, phase: .standard) }
    registry.requests.launch = LifecycleCause(.api)
    deliver(&registry)
    return registry
  }

  private func names(_ steps: [Delivered]) -> [String] { steps.map(\.step.name) }

  // MARK: Transitions

  @Test func theLaunchHasTheCauseOfItsRequest() {
    var registry = LifecycleRegistry()
    registry.requests.launch = LifecycleCause(.api)
    let plans = deliver(&registry)
    #expect(names(plans) == ["DidFinishLaunching", "WillEnterForeground"])
    for plan in plans {
      guard case .api = plan.cause.origin else {
        Issue.record("\(plan.cause)")
        continue
      }
      #expect(plan.kind == .launch)
    }
  }

  /// Else its hold could be passed for good.
  @Test func theLaunchIsATransitionUntilItIsOver() {
    var registry = LifecycleRegistry()
    registry.requests.launch = LifecycleCause(.api)
    _ = registry.next()
    #expect(registry.isLaunchTransition)
    registry.finish(.kind(.didFinishLaunching))
    #expect(registry.endTransition() == nil)
    deliver(&registry)
    #expect(!registry.isLaunchTransition)
  }

  @Test func aCatchUpIsATransitionOfItsOwn() {
    var registry = launched(first)
    registry.members.add(second, phase: .standard)
    let plans = deliver(&registry)
    #expect(names(plans) == ["DidFinishLaunching", "WillEnterForeground"])
    #expect(plans.allSatisfy { $0.kind == .catchUp && $0.members == [second] })
    #expect(plans.allSatisfy { $0.isLast })
  }

  @Test func aTransitionEndsWithItsLastStep() {
    var registry = launched(first)
    receive(.reload, &registry)
    receive(.saveState, &registry)
    #expect(deliver(&registry).map(\.isLast) == [false, true, true])
  }

  /// Whether it was posted or not.
  @Test func whatWasRequestedFirstIsDeliveredFirst() {
    struct Note: CustomNotification {}
    var registry = launched(first)
    for request: LifecycleRequest in [.saveState, .post(Note()), .pressure, .post(Note())] {
      receive(request, &registry)
    }
    #expect(deliver(&registry).map(\.kind) == [.saveState, .post, .pressure, .post])
  }

  /// It keeps the first one's place, and has the last one's cause.
  @Test func requestsOfOneKindThatWaitTogetherAreOne() {
    var registry = launched(first)
    receive(.saveState, &registry)
    receive(.pressure, &registry)
    let signal = LifecycleCause(.signal(.sigusr1, pid: 1, uid: 0))
    _ = registry.receive(LifecycleEvent(.saveState, cause: signal))
    let plans = deliver(&registry)
    #expect(plans.map(\.kind) == [.saveState, .pressure])
    #expect(plans.map { $0.cause.signal != nil } == [true, false])
  }

  /// Nor does what came between the two overtake it.
  @Test func aPauseWithItsSleepIsBeforeALaterPost() {
    struct Note: CustomNotification {}
    var registry = launched(first)
    for request: LifecycleRequest in [.pause, .post(Note()), .sleep] {
      receive(request, &registry)
    }
    #expect(deliver(&registry).map(\.kind) == [.sleep, .sleep, .sleep, .post])
  }

  /// As by any other pause: a hook that reads the state finds it.
  @Test func theTerminationEntersTheBackgroundWithItsFirstStep() {
    var registry = launched(first)
    _ = registry.receive(LifecycleEvent(.terminate))
    let step = registry.next()?.step.name
    #expect(step == "DidEnterBackground" && registry.state == .background)
  }

  /// It is over with the step before, also behind a hold.
  @Test func aStepThatIsNoLongerRequestedKeepsNoTransitionOpen() {
    var registry = LifecycleRegistry()
    registry.requests.launch = LifecycleCause(.api)
    _ = registry.next()
    receive(.pause, &registry)
    registry.finish(.kind(.didFinishLaunching))
    #expect(registry.endTransition() != nil && registry.transition == nil)
  }

  /// The poster may wait for its deinit.
  @Test func aPostThatWasDeliveredIsReleased() {
    struct Note: CustomNotification {}
    var registry = launched(first)
    weak var released: LifecyclePost?
    do {
      let post = LifecyclePost(Note())
      released = post
      _ = registry.receive(LifecycleEvent(.post(post.notification)), post: post)
      #expect(deliver(&registry).count == 1)
    }
    #expect(released == nil && registry.transition == nil)
  }

  @Test func nothingIsInTransitionAfterAnAbort() {
    var registry = launched(first)
    _ = registry.receive(LifecycleEvent(.terminate))
    let plan = registry.next()
    #expect(plan != nil && registry.transition != nil)
    #expect(registry.abort() != nil && registry.transition == nil)
    // The step that was overtaken has ended.
    registry.finish(.kind(.didEnterBackground))
    #expect(registry.endTransition() == nil)
    // Not even the pause, which the observer has not had.
    #expect(deliver(&registry).isEmpty && registry.state == .terminated)
  }

  @Test func signalsEscalateAndCallsDoNot() {
    var registry = launched(first)
    let call = LifecycleEvent(.terminate)
    let signal = LifecycleEvent(
      .terminate, cause: LifecycleCause(.signal(.sigterm, pid: 1, uid: 0)))
    let effects = [call, call, signal, call, signal, call, signal, signal]
      .map { registry.receive($0) }
    #expect(
      effects == [.terminate, .none, .none, .none, .expedite, .none, .exitNow, .exitNow])
    #expect(registry.receive(LifecycleEvent(.reload)) == .refused)
  }

  /// What was on its way up is not where it ends.
  @Test func aForegroundThatTheEndOvertakesIsNotEntered() {
    var registry = LifecycleRegistry(state: .background)
    receive(.resume(for: .operator), &registry)
    let plan = registry.next()
    #expect(plan?.step.name == "WillEnterForeground")
    _ = registry.receive(LifecycleEvent(.terminate))
    registry.finish(.kind(.willEnterForeground))
    #expect(registry.state == .background)
  }

  /// It was busy when the others were paused, and free again when they were told of the machine's sleep.
  @Test func whoWasNotPausedIsNotSuspended() {
    var registry = launched(first)
    registry.members.update(first) { $0.isBusy = true }
    receive(.sleep, &registry)
    let plans = deliver(&registry, reaches: false)
    #expect(names(plans) == ["DidEnterBackground", "ShouldSaveState", "WillSleep"])
    #expect(plans.last?.members == [])
  }

  /// Its hook was abandoned before it began: it has not had the sleep's notification, or still waits for the other.
  @Test func whoWasNotReachedIsWhereItWas() {
    var registry = launched(first)
    for (request, isAsleep) in [(LifecycleRequest.sleep, false), (.wakeUp, true)] {
      receive(request, &registry)
      while let step = registry.next()?.step {
        registry.reached(first, step.change)
        if [.willSleep, .didWakeUp].contains(step.kind) {
          registry.notReached(first, step)
          #expect(registry.members.progress(of: first)?.isAsleep == isAsleep)
          registry.reached(first, step.change)
        }
        registry.finish(step)
        _ = registry.endTransition()
      }
    }
  }

  /// It has a hook that was abandoned, and receives it when that has ended, before anything else.
  @Test func whoWasBusyAtTheResumeIsResumedLater() {
    var registry = launched(first)
    receive(.sleep, &registry)
    #expect(deliver(&registry).last?.step.name == "WillSleep")
    registry.members.update(first) { $0.isBusy = true }
    receive(.wakeUp, &registry)
    deliver(&registry, reaches: false)
    registry.members.update(first) { $0.isBusy = false }
    #expect(names(deliver(&registry)) == ["DidWakeUp", "WillEnterForeground"])
  }

  /// It is busy for good, and would only be skipped.
  @Test func theTerminationPausesNobodyTwice() {
    var registry = launched(first)
    _ = registry.receive(LifecycleEvent(.terminate))
    let pause = LifecycleStep.kind(.didEnterBackground)
    _ = registry.next()
    registry.reached(first, pause.change)
    registry.notReached(first, pause)
    registry.finish(pause)
    #expect(registry.next()?.step.name == "the end of work")
  }

  private func task(_ id: ObserverID) -> Member {
    Member(
      id: id, phase: .standard, name: .given("work"), receives: [],
      work: WorkOptions(form: .task))
  }

  /// The beginning and the end of work are steps, and no notifications; they are only for work that runs throughout.
  @Test func workBeginsWhenAllAreLaunchedAndEndsBeforeTheSave() {
    var registry = LifecycleRegistry()
    registry.add(task(first))
    registry.members.add(second, phase: .standard)
    registry.requests.launch = LifecycleCause(.api)
    let launch = deliver(&registry)
    #expect(
      names(launch) == ["DidFinishLaunching", "the beginning of work", "WillEnterForeground"])
    #expect(launch[1].members == [first])
    _ = registry.receive(LifecycleEvent(.terminate))
    let stop = deliver(&registry)
    #expect(
      names(stop) == ["DidEnterBackground", "the end of work", "ShouldSaveState", "WillTerminate"])
    #expect(stop[1].members == [first])
  }

  /// Found by an attack: its beginning was passed, and it began after READY.
  @Test func workThatALateObserverAddsBeginsWithTheLaunch() throws {
    var registry = LifecycleRegistry()
    registry.members.add(first, phase: .standard)
    registry.requests.launch = LifecycleCause(.api)
    for (id, new) in [(first, second), (second, ObserverID(value: 3, slot: 2))] {
      let next = registry.next()
      #expect(next?.members == [id])
      registry.reached(id, LifecycleStep.kind(.didFinishLaunching).change)
      if id == first {
        registry.members.add(new, phase: .standard)
      } else {
        registry.add(task(new))
      }
      registry.finish(.kind(.didFinishLaunching))
    }
    let rest = deliver(&registry)
    #expect(names(rest) == ["the beginning of work", "WillEnterForeground"])
    #expect(rest.map(\.kind) == [.launch, .launch])
  }

  /// Found by a reading: it began after READY, and its failure did not fail the launch.
  @Test func workThatWorkAddsBeginsWithTheLaunch() throws {
    var registry = LifecycleRegistry()
    registry.add(task(first))
    registry.requests.launch = LifecycleCause(.api)
    for step in [LifecycleStep.kind(.didFinishLaunching), .workBegins] {
      let next = registry.next()
      #expect(next?.step.name == step.name && next?.members == [first])
      registry.reached(first, step.change)
      if step.kind == nil { registry.add(task(second)) }
      registry.finish(step)
    }
    #expect(names(deliver(&registry)) == ["the beginning of work", "WillEnterForeground"])
  }

  /// It is part of the launch wherever that leads, as of a standby's.
  @Test func workBeginsInALaunchInTheBackground() {
    var registry = LifecycleRegistry()
    registry.add(task(first))
    receive(.pause, &registry)
    registry.requests.launch = LifecycleCause(.api)
    let plans = deliver(&registry)
    #expect(names(plans).prefix(2) == ["DidFinishLaunching", "the beginning of work"])
    #expect(plans.prefix(2).map(\.kind) == [.launch, .launch])
  }

  /// A hold does not keep a launch from having it, and a late one needs what late observers bring up.
  @Test(arguments: [0, 1]) func workBeginsAfterLaunchesAlsoLateOnes(holds: Int) {
    var registry = launched()
    registry.holds = holds
    registry.add(task(first))
    registry.members.add(second, phase: .standard)
    #expect(deliver(&registry).isEmpty == (holds > 0))
    registry.holds = 0
    let isLate = names(deliver(&registry))
    #expect(
      holds == 0
        || isLate == ["DidFinishLaunching", "the beginning of work", "WillEnterForeground"])
  }

  // MARK: Questions

  @Test func itIsIdleWhenNothingIsLeftEvenBehindAHold() {
    var registry = launched(first)
    #expect(registry.isIdle)
    registry.holds += 1
    #expect(registry.isIdle)
    receive(.saveState, &registry)
    #expect(!registry.isIdle)
    registry.holds -= 1
    let plan = registry.next()
    #expect(plan != nil && !registry.isIdle)
    registry.finish(.kind(.shouldSaveState))
    #expect(registry.endTransition() != nil && registry.isIdle)
  }

  /// The delay lock is let go of when it is, and only then.
  @Test func theSleepIsSettledWhenItsLastStepHasEnded() {
    var registry = launched(first)
    #expect(registry.isSleepSettled)
    receive(.sleep, &registry)
    for step in ["DidEnterBackground", "ShouldSaveState", "WillSleep"] {
      #expect(!registry.isSleepSettled)
      guard let next = registry.next() else { break }
      #expect(next.step.name == step && !registry.isSleepSettled)
      for member in next.members { registry.reached(member, next.step.change) }
      registry.finish(next.step)
    }
    #expect(registry.endTransition() != nil && registry.isSleepSettled)
    receive(.saveState, &registry)
    _ = registry.next()
    #expect(registry.isSleepSettled, "what else is delivered does not matter")
    _ = registry.receive(LifecycleEvent(.terminate))
    #expect(!registry.isSleepSettled, "the machine waits for the end")
  }

  /// Somebody has taken the sleep's reason away and worked on: the next sleep pauses the daemon again.
  @Test func aSleepPausesAlsoWhoIsAwakeAgainstTheMachinesWord() {
    var registry = launched(first)
    receive(.sleep, &registry)
    deliver(&registry)
    receive(.resume(for: .sleep), &registry)
    deliver(&registry)
    #expect(registry.state == .foreground)
    receive(.sleep, &registry)
    deliver(&registry)
    #expect(registry.state == .background)
  }
}
