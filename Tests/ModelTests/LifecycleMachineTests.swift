// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization
import Testing

@testable import DaemonLifecycle

/// What the machine's parts do together, step by step: single rules that a simulated life seldom comes to.
@Suite struct LifecycleMachineTests {
  private struct Note: CustomNotification {}
  private struct BadDisk: Error {}

  /// A daemon in the foreground with one observer.
  private let daemon = DaemonUnderTest(
    hasServiceManager: true,
    observing: [ShouldSaveState.self, WillSleep.self, CheckHealth.self, Note.self])

  private static let post = LifecycleMachine.Input.post(LifecyclePost(Note()), inside: nil)

  /// A daemon whose sleep leaves its one observer no time for a pause.
  private func daemonWithoutTimeToPause() -> DaemonUnderTest {
    let daemon = DaemonUnderTest(
      .init(cancellationGrace: .zero),
      observing: [DidEnterBackground.self, ShouldSaveState.self, WillSleep.self])
    daemon.give(.sleepDelay(.microseconds(1200)))
    return daemon
  }

  // MARK: Time

  @Test func moreTimeForAHookExtendsTheStop() throws {
    let save = try #require(daemon.request(.terminate).starts.first)
    let end = try #require(daemon.stop.budget?.end)
    daemon.give(.extend(save, by: .seconds(60)))
    #expect(daemon.stop.budget?.end == end.advanced(by: .seconds(60)))
  }

  /// A user's service has no longer than its manager, which is stopped at the end of the session.
  @Test(arguments: [(6, 30), (30, 6)]) func theShorterOfTwoLimitsCounts(own: Int, managers: Int) {
    daemon.give(.stopTimeout(.seconds(own)))
    daemon.give(.stopTimeout(.seconds(managers), isManagers: true))
    #expect(daemon.stop.allowed == .seconds(6))
    daemon.request(.terminate)
    #expect(daemon.stop.budget.map { $0.end <= at(6) } == true)
    daemon.give(.stopTimeout(.seconds(4), isManagers: managers == 6))
    #expect(daemon.stop.budget.map { $0.end <= at(4) } == true)
  }

  /// The outer hook's time is all that there is for its post.
  @Test func moreTimeThatANestedHookCannotGetDoesNotExtendTheStop() throws {
    let save = try #require(daemon.request(.terminate).starts.first)
    let nested = daemon.give(.post(LifecyclePost(Note()), inside: save)).starts.first
    let end = daemon.stop.budget?.end
    daemon.give(.extend(try #require(nested), by: .seconds(60)))
    #expect(daemon.stop.budget?.end == end)
    #expect(daemon.call(nested)?.deadline == daemon.call(save)?.deadline)
  }

  /// systemd was promised the longer time, and is to hear of it again after a daemon-reload.
  @Test func ofTwoHooksTheLongerExtensionCounts() {
    let daemon = DaemonUnderTest(hasServiceManager: true)
    for _ in 1...2 { daemon.add([ShouldReload.self], phase: .init(order: 1, isConcurrent: true)) }
    let hooks = daemon.request(.reload).starts
    #expect(daemon.give(.extend(hooks[0], by: .seconds(600))).extensions == [.seconds(612)])
    #expect(daemon.give(.extend(hooks[1], by: .seconds(1))).extensions == [.seconds(612)])
    #expect(daemon.give(.clock, at: at(20)).extensions == [.seconds(592)])
  }

  @Test func whoAsksForNoMoreTimeGetsNone() throws {
    let save = try #require(daemon.request(.terminate).starts.first)
    #expect(daemon.give(.extend(save, by: .zero)).messages.isEmpty)
    // Nobody was promised anything, so a shorter stop is a shorter stop.
    daemon.give(.stopTimeout(.seconds(10)))
    #expect(try #require(daemon.stop.budget?.end) <= at(10))
  }

  @Test func afterASecondSignalNoHookGetsMoreTime() throws {
    let save = try #require(daemon.signal().starts.first)
    daemon.signal(at: 2)
    let end = try #require(daemon.stop.budget?.end)
    daemon.give(.extend(save, by: .seconds(600)), at: at(3))
    #expect(daemon.stop.budget?.end == end)
    #expect(try #require(daemon.call(save)?.deadline) <= end)
  }

  /// One that is suspended with an observer of this notification, when logind waits for so long.
  private func suspended(delay: Duration, grace: Duration) -> Call? {
    let daemon = DaemonUnderTest(.init(cancellationGrace: grace), observing: [WillSleep.self])
    daemon.give(.sleepDelay(delay))
    return daemon.call(daemon.request(.sleep).starts.first)
  }

  /// A hook for which there is less than a millisecond is not begun.
  @Test func aMillisecondIsTheLeastThatAHookIsGiven() {
    #expect(suspended(delay: .milliseconds(1), grace: .zero) != nil)
    #expect(suspended(delay: .nanoseconds(999_999), grace: .zero) == nil)
  }

  /// So that it is over when the budget is.
  @Test(arguments: [(3, 6, 2), (1, 7, 1)])
  func aQuarterOfWhatABudgetLeavesIsTheLongestGrace(grace: Int, deadline: Int64, left: Int) {
    let call = suspended(delay: .seconds(8), grace: .seconds(grace))
    #expect(call?.deadline == at(deadline) && call?.grace == .seconds(left))
  }

  /// Until the bus has said how long a stop may take, it may be less than the stop's 90 s: they are requested, with a
  /// second more, at once and again.
  @Test func anUnknownLimitOfAStopIsExtended() {
    #expect(daemon.request(.terminate).extensions == [.seconds(91)])
    #expect(daemon.give(.clock, at: at(1)).extensions == [.seconds(90)])
  }

  @Test func aKnownLimitOfAStopIsNot() {
    let daemon = DaemonUnderTest(state: .launching, hasServiceManager: true)
    let inputs: [LifecycleMachine.Input] = [
      .launch { _ in }, .stopTimeout(.seconds(6)), .event(.init(.terminate)), .clock,
    ]
    #expect(inputs.flatMap { daemon.give($0).extensions } == [])
  }

  /// The drain is a part of the stop: its time is requested at its beginning.
  @Test func anUnknownLimitIsExtendedBeforeADrain() {
    let daemon = DaemonUnderTest(
      .init(stopTimeout: .seconds(40), stopDelay: .seconds(5)), hasServiceManager: true,
      observing: [ShouldSaveState.self])
    #expect(daemon.request(.terminate).extensions == [.seconds(41)])
    let again = daemon.machine.deadline
    #expect(again == at(0).advanced(by: .milliseconds(100)))
    #expect(daemon.give(.clock, at: at(4)).extensions == [.seconds(37)])
  }

  /// A daemon-reload makes systemd forget it, and where the unit's own limit is over it kills at once. Without a bus nothing
  /// tells of it.
  @Test func anExtensionIsRepeatedWithinEachDaemonReload() throws {
    let save = try #require(daemon.request(.reload).starts.first)
    let before = daemon.machine.deadline
    #expect(before >= at(1), "nothing is sent more often without an extension")
    daemon.give(.extend(save, by: .seconds(60)))
    for number in 1...3 {
      let time = daemon.machine.deadline
      #expect(time == at(0).advanced(by: .milliseconds(100) * number))
      #expect(daemon.give(.clock, at: time).extensions.count == 1)
    }
  }

  @Test func aDaemonReloadIsAskedForTheTimeAgain() throws {
    daemon.give(.stopTimeout(.seconds(90)))
    #expect(daemon.give(.managerReload).extensions.isEmpty)
    let reload = try #require(daemon.request(.reload).starts.first)
    #expect(daemon.give(.managerReload).extensions.isEmpty)
    daemon.give(.extend(reload, by: .seconds(60)))
    #expect(daemon.machine.deadline == at(1), "with a bus it is repeated each second")
    #expect(daemon.give(.managerReload).extensions == [.seconds(72)])
  }

  /// A stop of 30 s that has taken 10 is asked for as the daemon-reload begins, after which it has 4 s, or 60.
  @Test(arguments: [4, 60]) func aLimitThatChangesInADrainCounts(seconds: Int) throws {
    let daemon = DaemonUnderTest(
      .init(saveReserve: .seconds(2), exitGrace: .seconds(2), stopDelay: .seconds(50)),
      state: .launching, hasServiceManager: true, observing: [ShouldSaveState.self])
    daemon.give(.launch { _ in })
    daemon.give(.stopTimeout(.seconds(30)))
    #expect(daemon.signal().extensions.isEmpty)
    #expect(daemon.give(.managerReload, at: at(10)).extensions == [.seconds(20)])
    daemon.give(.stopTimeout(.seconds(seconds)), at: at(10))
    let save = daemon.give(.clock, at: at(10)).starts.first
    if seconds == 4 {
      #expect(try #require(daemon.call(save)).deadline > at(10))
    } else {
      #expect(save == nil && daemon.machine.stop.deadline > at(40))
    }
  }

  /// The stop is longer by what the slowest of them needs, however many there are, and whenever they ask.
  @Test func hooksThatRunTogetherExtendAStopOnce() throws {
    let daemon = DaemonUnderTest(hasServiceManager: true)
    for number in 1...100 {
      daemon.add(
        [DidEnterBackground.self], phase: .init(order: 1, isConcurrent: true),
        timeout: .seconds(number))
    }
    daemon.add([DidEnterBackground.self])
    let hooks = daemon.signal().starts
    let end = try #require(daemon.stop.budget?.end)
    for hook in hooks {
      daemon.give(.extend(hook, by: .seconds(4)))
      daemon.give(.extend(hook, by: .seconds(6)))
      if hook == hooks[7] { daemon.give(.ended(hook, .completed)) }
    }
    #expect(hooks.count == 100 && daemon.stop.budget?.end == end.advanced(by: .seconds(10)))
    daemon.give(.extend(hooks[0], by: .seconds(1)))
    #expect(daemon.stop.budget?.end == end.advanced(by: .seconds(11)))
    // The next hook runs after them.
    var next: CallID?
    for hook in hooks where hook != hooks[7] {
      next = daemon.give(.ended(hook, .completed)).starts.first
    }
    daemon.give(.extend(try #require(next), by: .seconds(5)))
    #expect(daemon.stop.budget?.end == end.advanced(by: .seconds(16)))
  }

  /// One that asked for time before the stop has had none of the stop's.
  @Test func timeBeforeTheStopIsNotCounted() throws {
    let daemon = DaemonUnderTest(hasServiceManager: true)
    for _ in 1...2 {
      daemon.add([DidEnterBackground.self], phase: .init(order: 1, isConcurrent: true))
    }
    let hooks = daemon.request(.pause(for: .operator)).starts
    daemon.give(.extend(hooks[0], by: .seconds(600)))
    daemon.signal()
    let end = try #require(daemon.stop.budget?.end)
    daemon.give(.extend(hooks[1], by: .seconds(10)))
    #expect(daemon.stop.budget?.end == end.advanced(by: .seconds(10)))
  }

  /// Before the unit's own limit is over, a daemon-reload takes nothing away.
  @Test func aKnownLimitOfAStopIsExtendedFromItsEndOn() throws {
    let daemon = DaemonUnderTest(
      .init(exitGrace: .seconds(2)), state: .launching, hasServiceManager: true,
      observing: [ShouldSaveState.self])
    daemon.give(.launch { _ in })
    daemon.give(.stopTimeout(.seconds(10)), at: at(1))
    let save = try #require(daemon.signal(at: 1).starts.first)
    daemon.give(.extend(save, by: .seconds(20)), at: at(2))
    var times: [MonotonicTime] = []
    while daemon.machine.deadline < .distantFuture {
      let time = daemon.machine.deadline
      if daemon.give(.clock, at: time).extensions.count == 1 { times.append(time) }
    }
    // From a second before the limit to a second after the budget, however the hook ends: the process is still there.
    #expect(times.first == at(10) && times.count == 21)
    #expect(daemon.stop.exit != nil)
    #expect(times.last.map { $0.duration(to: at(31)) <= .seconds(1) } == true)
  }

  /// A change of the unit in a stop may shorten its limit.
  @Test func aLimitThatIsShorterNowIsExtendedEarlier() throws {
    let daemon = DaemonUnderTest(
      state: .launching, hasServiceManager: true, observing: [ShouldSaveState.self])
    daemon.give(.launch { _ in })
    daemon.give(.stopTimeout(.seconds(90)))
    let save = try #require(daemon.signal().starts.first)
    daemon.give(.extend(save, by: .seconds(60)))
    daemon.give(.stopTimeout(.seconds(20)), at: at(1))
    #expect(daemon.give(.clock, at: at(1)).extensions.count == 1)
    #expect(daemon.give(.clock, at: at(18)).extensions.isEmpty)
    #expect(daemon.give(.clock, at: at(19)).extensions.count == 1)
  }

  /// systemd's timer is that of the start, though the daemon stops.
  @Test func aStopOfAnExtendedLaunchIsExtendedAtOnce() throws {
    let daemon = DaemonUnderTest(
      state: .launching, hasServiceManager: true,
      observing: [DidFinishLaunching.self, ShouldSaveState.self])
    daemon.give(.stopTimeout(.seconds(90)))
    let launch = try #require(daemon.give(.launch { _ in }).starts.first)
    daemon.give(.extend(launch, by: .seconds(60)))
    let failure = DaemonLifecycle.Failure(SimulatedFailure())
    #expect(
      daemon.give(.ended(launch, .failed(failure)), at: at(5)).extensions == [.seconds(90)])
    #expect(daemon.give(.clock, at: at(6)).extensions == [.seconds(89)])
  }

  @Test func withoutAServiceManagerNobodyIsAsked() throws {
    let daemon = DaemonUnderTest(observing: [ShouldReload.self])
    let reload = try #require(daemon.request(.reload).starts.first)
    let deadline = daemon.machine.deadline
    #expect(daemon.give(.extend(reload, by: .seconds(60))).extensions.isEmpty)
    let extended = daemon.machine.deadline
    #expect(extended >= deadline)
  }

  /// What was asked for is asked for again until it is over: 11 s, a second for the grace, and one more.
  @Test func anExtensionIsRepeatedWhileItLasts() throws {
    let save = try #require(daemon.request(.reload).starts.first)
    #expect(daemon.give(.extend(save, by: .seconds(1))).extensions == [.seconds(13)])
    let times = [1, 12, 13].map { daemon.give(.clock, at: at($0)).extensions }
    #expect(times == [[.seconds(12)], [.seconds(1)], []])
  }

  /// The service manager's timer runs no longer.
  @Test func anExtensionEndsWithItsTransition() throws {
    let reload = try #require(daemon.request(.reload).starts.first)
    daemon.give(.extend(reload, by: .seconds(9)))
    daemon.give(.ended(reload, .completed), at: at(2))
    #expect(daemon.request(.saveState, at: at(2)).starts.count == 1)
    #expect(daemon.give(.clock, at: at(3)).extensions.isEmpty)
  }

  @Test(arguments: [Duration?.none, .seconds(20)])
  func theSettingsOfTheStartAreTaken(before: Duration?) {
    let daemon = DaemonUnderTest(.init(stopTimeout: before))
    let configuration = LifecycleConfiguration(stopTimeout: .seconds(20))
    daemon.machine.setPolicy(.init(configuration: configuration, watchdogPeriod: .seconds(8)))
    #expect(daemon.machine.policy.stopTimeout == .seconds(20))
    #expect(daemon.machine.health.period == .seconds(8))
  }

  // MARK: Sleep

  @Test func aSleepIsLimitedByWhatLogindGrants() {
    daemon.give(.sleepDelay(.seconds(5)))
    daemon.request(.sleep, at: at(1))
    #expect(daemon.machine.sleep.budget?.end == at(5))
    #expect(daemon.machine.sleep.budget?.endOfSaves == MonotonicTime(nanoseconds: 4_750_000_000))
    #expect(
      daemon.machine.sleep.budget?.endBeforeSaves == MonotonicTime(nanoseconds: 2_750_000_000))
  }

  /// logind's limit is for the sleep that it was read for.
  @Test func aSleepThatWasCalledOffLeavesNoLimitToTheNext() {
    daemon.give(.sleepDelay(.seconds(5)))
    daemon.request(.wakeUp)
    #expect(daemon.request(.sleep, at: at(1)).starts.count == 1)
    #expect(daemon.machine.sleep.budget?.end == nil)
  }

  /// logind waits no longer, so there is no time to keep to.
  @Test func aLimitThatIsOverIsNone() {
    daemon.give(.sleepDelay(.zero))
    #expect(daemon.request(.sleep).starts.count == 1)
    #expect(daemon.machine.sleep.budget?.end == nil)
  }

  /// There was no time to pause it: it saves, and is paused when the machine is awake again, and not before.
  @Test func whoCouldNotBePausedInTimeSavesAndIsPausedAfterTheSleep() throws {
    let daemon = daemonWithoutTimeToPause()
    let save = daemon.request(.sleep).starts
    #expect(daemon.kinds(save) == [.shouldSaveState])
    // What follows the suspend is the pause: nobody is told of a sleep who was not paused.
    let output = daemon.give(.ended(try #require(save.first), .completed))
    #expect(daemon.kinds(output.starts) == [.didEnterBackground])
    // And it was tried once: the suspend's report says so.
    #expect(output.reports.first?.entries.count == 2)
  }

  /// Nothing comes later, so who could not be paused in time is paused now.
  @Test func aStopPausesThoseForWhomASleepLeftNoTime() throws {
    let daemon = daemonWithoutTimeToPause()
    let save = daemon.request(.sleep).starts
    daemon.request(.terminate)
    let output = daemon.give(.ended(try #require(save.first), .completed))
    #expect(daemon.kinds(output.starts) == [.didEnterBackground])
  }

  /// One whose hook still ran when the others resumed sleeps, as far as it knows.
  @Test func nobodyIsSuspendedTwice() throws {
    let daemon = DaemonUnderTest(observing: [WillSleep.self, DidWakeUp.self])
    daemon.add([ShouldSaveState.self])
    let save = try #require(daemon.request(.sleep).starts.first)
    let suspend = try #require(daemon.give(.ended(save, .completed)).starts.first)
    for time in [at(10), at(12)] { daemon.give(.clock, at: time) }
    #expect(daemon.request(.wakeUp, at: at(12)).starts.isEmpty)
    let next = try #require(daemon.request(.sleep, at: at(12)).starts.first)
    daemon.give(.ended(suspend, .completed), at: at(12))
    #expect(daemon.give(.ended(next, .completed), at: at(12)).starts.isEmpty)
    #expect(daemon.kinds(daemon.request(.wakeUp, at: at(12)).starts) == [.didWakeUp])
  }

  // MARK: Deliveries

  @Test func whatATerminationHasCutIsReportedAsOvertaken() throws {
    let save = try #require(daemon.request(.reload).starts.first)
    daemon.request(.terminate)
    let ended = daemon.give(.ended(save, .completed)).ended
    #expect(ended.filter { $0.kind == .reload }.map(\.report.isOvertaken) == [true])
  }

  /// With one step left or none, the others are not notified any more.
  @Test func whoWasSkippedMakesATransitionOvertaken() throws {
    let daemon = DaemonUnderTest(state: .background)
    for _ in 1...2 { daemon.add([WillEnterForeground.self]) }
    let first = try #require(daemon.request(.resume).starts.first)
    daemon.request(.terminate)
    let ended = daemon.give(.ended(first, .completed)).ended.filter { $0.kind == .foreground }
    #expect(ended.map(\.report.isOvertaken) == [true] && ended[0].report.entries.count == 2)
  }

  /// Who is removed has missed nothing, and the others have all the same.
  @Test func whoMissedTheForegroundIsRememberedUntilItsRemoval() throws {
    let daemon = DaemonUnderTest(state: .background)
    for _ in 1...2 { daemon.add([WillEnterForeground.self]) }
    var (calls, ids) = (daemon.request(.resume).starts, [ObserverID]())
    while let call = calls.popLast() {
      ids += [try #require(daemon.call(call)?.observer)]
      calls = daemon.give(.ended(call, .failed(DaemonLifecycle.Failure(SimulatedFailure())))).starts
    }
    #expect(ids.count == 2 && daemon.machine.unentered.failed == ids)
    daemon.give(.remove([ids[0]]))
    #expect(daemon.machine.unentered.failed == [ids[1]])
  }

  /// Nobody waits for it any more.
  @Test func whoIsRemovedWhileItEntersIsNotMissed() throws {
    let daemon = DaemonUnderTest(state: .background)
    daemon.add([WillEnterForeground.self])
    let call = try #require(daemon.request(.resume).starts.first)
    let observer = try #require(daemon.call(call)?.observer)
    daemon.give(.remove([observer]))
    daemon.give(.ended(call, .failed(DaemonLifecycle.Failure(SimulatedFailure()))))
    #expect(daemon.isReady)
  }

  /// One that was abandoned counts when it completes; one that had not begun by then was not called, and is called now.
  @Test(arguments: [true, false]) func whatWasAbandonedHasEnteredIfItHasBegun(_ begins: Bool) throws
  {
    let daemon = DaemonUnderTest(state: .background)
    daemon.add([WillEnterForeground.self])
    let resume = LifecycleMachine.Input.event(LifecycleEvent(.resume))
    let call = try #require(daemon.give(resume, begins: begins).starts.first)
    // It is cancelled, and abandoned.
    for _ in 1...2 { daemon.give(.clock, at: daemon.machine.deadline) }
    #expect(!daemon.isReady)
    let again = daemon.give(.ended(call, .completed), at: at(60)).starts
    #expect(again.count == (begins ? 0 : 1) && daemon.isReady == begins)
  }

  /// The pause may wait for its poster, as for a body that posts.
  @Test func aPostWhosePosterWasCancelledIsDeliveredAtOnce() throws {
    let daemon = DaemonUnderTest(observing: [DidEnterBackground.self, Note.self])
    let pause = try #require(daemon.request(.pause).starts.first)
    let post = LifecyclePost(Note())
    #expect(daemon.give(.post(post, inside: nil)).starts.isEmpty)
    let note = try #require(daemon.give(.hasten(post)).starts.first)
    #expect(daemon.give(.hasten(post)).starts.isEmpty)
    #expect(daemon.give(.ended(note, .completed)).answers.count == 1)
    #expect(daemon.give(.ended(pause, .completed)).answers.isEmpty && daemon.isIdle)
  }

  /// Found by a simulated life: its hook was called after the end.
  @Test func aPostThatWasHastenedAndHasNotBegunEndsWithTheDaemon() throws {
    let daemon = DaemonUnderTest(observing: [DidEnterBackground.self, Note.self])
    let pause = try #require(daemon.request(.pause).starts.first)
    let post = LifecyclePost(Note())
    daemon.give(.post(post, inside: nil))
    let note = try #require(daemon.give(.hasten(post), begins: false).starts.first)
    daemon.request(.terminate)
    #expect(daemon.give(.ended(pause, .completed)).answers.count == 1)
    let begins = daemon.machine.calls.move(note, to: .begun)
    #expect(daemon.machine.stop.exit != nil && !begins)
  }

  @Test func oneWhoIsGoneIsRemovedAndNotReported() throws {
    let save = try #require(daemon.request(.saveState).starts.first)
    let output = daemon.give(.ended(save, .gone))
    #expect(output.reports.flatMap(\.entries).isEmpty)
    #expect(output.removed == [1])
  }

  /// What went wrong with a post inside of a hook is in no transition's report, so it is published by itself.
  @Test(arguments: [true, false]) func problemsOfAPostInAHookArePublished(_ fails: Bool) throws {
    let save = try #require(daemon.request(.saveState).starts.first)
    let post = daemon.give(.post(LifecyclePost(Note()), inside: save))
    let nested = try #require(post.starts.first)
    let end: LifecycleMachine.CallEnd =
      fails ? .failed(DaemonLifecycle.Failure(SimulatedFailure())) : .completed
    let counts = daemon.give(.ended(nested, end)).facts.compactMap { fact in
      if case .problems(let problems) = fact { problems.count } else { nil }
    }
    #expect(counts == (fails ? [1] : []))
  }

  /// Until then its observer receives nothing more, so whoever reads the log wants to know.
  @Test(arguments: [nil, SimulatedFailure(), CancellationError()] as [(any Error)?])
  func theEndOfAnAbandonedHookIsPublished(_ error: (any Error)?) throws {
    let save = try #require(daemon.request(.saveState).starts.first)
    var abandoned: [Int] = []
    for second in [10, 11] as [Int64] {
      abandoned.append(daemon.machine.calls.abandonedCount)
      daemon.give(.clock, at: at(second))
    }
    abandoned.append(daemon.machine.calls.abandonedCount)
    #expect(
      daemon.give(
        .ended(save, error.map { .failed(DaemonLifecycle.Failure($0)) } ?? .completed), at: at(15)
      ).warnings
        == [
          error is SimulatedFailure
            ? "Int, ShouldSaveState: failed after 15 s: \(SimulatedFailure()); it had been abandoned"
            : "Int, ShouldSaveState: ended after 15 s; it had been abandoned"
        ])
    #expect(abandoned == [0, 0, 1] && daemon.machine.calls.abandonedCount == 0)
  }

  /// A call that has ended wakes nobody up.
  @Test func theClockComesForTheNextCallOfADelivery() throws {
    let daemon = DaemonUnderTest()
    for _ in 1...2 { daemon.add([ShouldSaveState.self]) }
    let first = try #require(daemon.request(.saveState).starts.first)
    daemon.give(.ended(first, .completed), at: at(5))
    #expect(daemon.machine.deadline == at(15))
  }

  /// What was held back is no longer wanted when the hold is over, and nothing else is to be done.
  @Test func aTransitionEndsWithoutItsLastStep() throws {
    let pause = try #require(daemon.request(.pause).starts.first)
    daemon.give(.ended(pause, .completed))
    let save = try #require(daemon.request(.sleep).starts.first)
    daemon.give(.hold)
    daemon.give(.ended(save, .completed))
    daemon.request(.wakeUp)
    #expect(daemon.give(.release).ended.map(\.kind) == [.sleep])
  }

  /// Those of a concurrent phase together, and the others one after another.
  @Test func hooksAreCalledInTheirGroups() {
    let daemon = DaemonUnderTest()
    let phases = [
      LifecyclePhase(order: 0), LifecyclePhase(order: 1, isConcurrent: true),
      LifecyclePhase(order: 2, isConcurrent: true), LifecyclePhase(order: 3),
    ]
    for phase in phases {
      for _ in 1...2 {
        daemon.add([ShouldReload.self], phase: phase)
        daemon.add([], phase: phase)
      }
    }
    var (starts, groups) = (daemon.request(.reload).starts, [[UInt64]]())
    while !starts.isEmpty {
      groups.append(starts.compactMap { daemon.call($0)?.observer.value })
      starts = starts.flatMap { daemon.give(.ended($0, .completed)).starts }
    }
    #expect(groups == [[1], [3], [5, 7], [9, 11], [13], [15]])
  }

  @Test func progressCountsWhatHasEndedWhatRunsAndWhatIsPlanned() throws {
    daemon.add([ShouldSaveState.self, ShouldReload.self])
    let save = try #require(daemon.request(.reload).starts.first)
    var facts = daemon.give(.clock, at: at(1)).facts
    daemon.give(.ended(save, .completed), at: at(1))
    facts += daemon.give(.clock, at: at(2)).facts
    let progress = facts.compactMap { fact in
      if case .progress(let progress) = fact { progress } else { nil }
    }
    #expect(progress.map(\.done) == [0, 1] && progress.map(\.total) == [3, 3])
    #expect(progress.map(\.waitingFor.count) == [1, 1])
  }

  @Test func whatIsHeldBackIsPendingForATest() {
    daemon.give(.hold)
    daemon.request(.saveState)
    let pending = daemon.machine.pending(at: at(0), isHeld: true) { _ in "" }
    #expect(pending == ["deliveries are held back", "an event has not been delivered"])
  }

  @Test func whatIsSaidToOperatorsIsPublished() {
    let inputs: [LifecycleMachine.Input] = [
      .status("busy"), .fact(.statusNote(.watchedUnit, "down")), .fact(.warning("late")),
      .fact(.recovered), .fact(.unmappedReload(at: at(0))),
    ]
    let said = inputs.flatMap { daemon.give($0).facts }.map { fact in
      switch fact {
      case .statusNote(_, let text): text ?? "none"
      case .warning(let text): text
      case .recovered: "recovered"
      case .unmappedReload: "unmapped"
      default: "else"
      }
    }
    #expect(said == ["busy", "down", "late", "recovered", "unmapped"])
    // A second later what was set too soon.
    #expect(daemon.give(.status("idle")).facts.count == 0)
    #expect(daemon.give(.clock, at: at(1)).facts.count == 1)
  }

  // MARK: Descriptions

  /// Also of a hook that was cancelled, and of one that was abandoned: an operator asks when something hangs.
  @Test func whatRunsIsDescribed() throws {
    let daemon = DaemonUnderTest(observing: [ShouldSaveState.self])
    func description(at time: MonotonicTime) -> [String] {
      daemon.give(.event(LifecycleEvent(.describe)), at: time).facts.compactMap { fact in
        if case .info(let text) = fact { text } else { nil }
      }
    }
    #expect(description(at: at(1)) == ["Described: no hook is running."])
    let save = try #require(daemon.request(.saveState).starts.first)
    let deadline = try #require(daemon.call(save)?.deadline)
    let running = try #require(description(at: deadline.advanced(by: .seconds(-2))).first)
    #expect(running.contains(" is still in its hook for ShouldSaveState ("))
    #expect(running.hasSuffix("; its deadline is in 2 s."))
    daemon.give(.clock, at: deadline)
    #expect(
      description(at: deadline).first?.contains("it was cancelled and will be abandoned in") == true
    )
    daemon.give(.clock, at: deadline.advanced(by: .seconds(5)))
    #expect(
      description(at: deadline.advanced(by: .seconds(5))).first?.hasSuffix(
        "has not ended its hook for ShouldSaveState, which was abandoned.") == true)
  }

  /// Where no hook runs, something else may: a body that keeps all of Swift's threads, for example.
  @Test func workIsDescribed() {
    let daemon = DaemonUnderTest()
    daemon.add(WorkOptions(), name: .given("importer"))
    let said = daemon.give(.event(LifecycleEvent(.describe)), at: at(90)).infos
    #expect(
      said == ["Described: no hook is running.", "Described: importer has run for 90 s."])
  }

  // MARK: Health

  /// Whoever is gone is neither ill nor silent.
  @Test func aCheckOfOneWhoIsGoneIsAnswered() throws {
    let check = try #require(daemon.request(.checkHealth).starts.first)
    daemon.give(.healthAsked(round: 1))
    daemon.give(.healthAnswer(.pool(round: 1)))
    #expect(daemon.give(.ended(check, .gone)).verdicts == ["healthy"])
  }

  /// Where no thread was to be had, the shell is asked to ask again; else it is not.
  @Test(arguments: [true, false]) func swiftsExecutorsAreAskedOnce(_ wereAsked: Bool) throws {
    let daemon = DaemonUnderTest(watchdogPeriod: .seconds(8))
    daemon.machine.health.arm(at: at(0))
    let round = try #require(daemon.give(.watchdogTick(stall: .zero)).healthRound)
    if wereAsked { daemon.give(.healthAsked(round: round)) }
    let again = daemon.give(.watchdogTick(stall: .zero), at: at(3)).healthRound
    #expect(again == (wereAsked ? nil : round))
  }

  /// At its time, not at a tick: a probe may have begun the check a moment before.
  @Test func silenceIsToldOf() throws {
    let daemon = DaemonUnderTest(watchdogPeriod: .seconds(8), observing: [CheckHealth.self])
    daemon.machine.health.arm(at: at(0))
    let check = daemon.give(.watchdogTick(stall: .zero)).starts.first
    // Half of the period is what an observer has.
    #expect(daemon.call(check)?.deadline == at(4))
    #expect(daemon.give(.watchdogTick(stall: .zero), at: at(1)).verdicts == [])
    let silences = daemon.give(.clock, at: at(2)).verdicts
    #expect(silences.count { $0 != "healthy" } == 1)
  }

  /// SIGSTOP, or a busy machine: the hook had no time, and has some now.
  @Test func aCheckIsNotTimedOutByAClockThatIsLate() throws {
    let daemon = DaemonUnderTest(watchdogPeriod: .seconds(8), observing: [CheckHealth.self])
    let check = try #require(daemon.request(.checkHealth).starts.first)
    #expect(daemon.call(check)?.deadline == at(4))
    daemon.give(.clock, at: at(6))
    #expect(daemon.call(check)?.isCancelled == false && daemon.call(check)?.deadline == at(8))
    daemon.give(.clock, at: at(8))
    #expect(daemon.call(check)?.isCancelled == true)
  }

  /// The one after a hook that had no time has some, too; not in a stop, which has its own.
  @Test(arguments: [false, true]) func theNextCheckIsNotSkippedByAClockThatIsLate(stops: Bool)
    throws
  {
    let daemon = DaemonUnderTest(watchdogPeriod: .seconds(8), observing: [CheckHealth.self])
    daemon.add([CheckHealth.self])
    let check = try #require(daemon.request(.checkHealth).starts.first)
    if stops { daemon.signal() }
    let next = daemon.give(.ended(check, .completed), at: at(6)).starts.first
    #expect(daemon.call(next)?.deadline == (stops ? nil : at(8)))
  }

  @Test func whoAsksForAHealthCheckIsItsCause() {
    let causes = daemon.request(.checkHealth).messages.compactMap { message in
      if case .announced(_, let cause, _) = message { "\(cause)" } else { nil }
    }
    #expect(causes == ["\(LifecycleCause(.api))"])
  }

  /// A check costs context switches, in a daemon that has nothing else to do.
  @Test func everySecondTickChecks() {
    let daemon = DaemonUnderTest(watchdogPeriod: .seconds(8))
    daemon.machine.health.arm(at: at(0))
    var (asked, pings) = ([Bool](), 0)
    for (tick, stall) in [0, 0, 0, 0, 5].enumerated() {
      let now = at(Int64(3 * tick))
      var outputs = [daemon.give(.watchdogTick(stall: .seconds(stall)), at: now)]
      asked.append(outputs[0].healthRound != nil)
      if let round = outputs[0].healthRound {
        let inputs: [LifecycleMachine.Input] = [
          .healthAsked(round: round), .healthAnswer(.pool(round: round)), .healthAnswer(.mainActor),
        ]
        outputs += inputs.map { daemon.give($0, at: now) }
      }
      pings += outputs.flatMap(\.verdicts).count
    }
    // The last comes after a stall from outside, and is forgiven at once.
    #expect(asked == [true, false, true, false, true] && pings == 6)
  }

  // MARK: The stop

  /// A daemon with a hook that a pause has abandoned, and which a stop waits for.
  private func stopsBesideAnAbandonedPause() throws -> (DaemonUnderTest, hook: CallID) {
    let daemon = DaemonUnderTest(
      .init(stopTimeout: .seconds(24)), observing: [DidEnterBackground.self, WillTerminate.self])
    let hook = try #require(daemon.request(.pause).starts.first)
    for time in [at(10), at(12)] { daemon.give(.clock, at: time) }
    #expect(daemon.call(hook)?.isAbandoned == true)
    #expect(daemon.signal(at: 13).starts.isEmpty)
    // With all the time that the stop has, but for a moment, and its grace.
    #expect(daemon.call(hook)?.deadline == at(33))
    return (daemon, hook)
  }

  /// It may be in a transaction, or in the middle of a file. It was cancelled, and may say so.
  @Test(arguments: [nil, CancellationError(), BadDisk()] as [(any Error)?])
  func aStopWaitsForWhatAPauseHasLeftBehind(_ error: (any Error)?) throws {
    let (daemon, hook) = try stopsBesideAnAbandonedPause()
    let end: LifecycleMachine.CallEnd = error.map { .failed(Failure($0)) } ?? .completed
    let next = daemon.give(.ended(hook, end), at: at(14))
    #expect(daemon.kinds(next.starts) == [.willTerminate] && next.warnings.isEmpty)
    daemon.give(.ended(try #require(next.starts.first), .completed), at: at(14))
    let exit = try #require(daemon.stop.exit)
    #expect(exit.exitStatus == (error is BadDisk ? 70 : 0))
    let entry = try #require(exit.report.entries.first)
    #expect(entry.notification == DidEnterBackground.self && entry.duration == .seconds(14))
  }

  /// They run already: each has as long as the first.
  @Test func allThatIsLeftBehindIsWaitedForTogether() throws {
    let daemon = DaemonUnderTest(.init(stopTimeout: .seconds(24)))
    for _ in 1...3 { daemon.add([DidEnterBackground.self]) }
    daemon.request(.pause)
    for time in 1...6 { daemon.give(.clock, at: at(Int64(time) * 12)) }
    daemon.signal(at: 80)
    #expect(daemon.machine.calls.deliveries.first?.running.count == 3)
    for time in [at(101), at(102)] { daemon.give(.clock, at: time) }
    #expect(daemon.stop.exit?.exitStatus == 124)
  }

  /// Before the work that ends then, which it may need.
  @Test func whatIsLeftBehindIsWaitedForFirst() throws {
    let daemon = DaemonUnderTest(observing: [DidEnterBackground.self])
    daemon.add(WorkOptions(form: .task, drains: true), phase: .init(order: 7))
    let hook = try #require(daemon.request(.pause).starts.first)
    for time in [at(10), at(12)] { daemon.give(.clock, at: time) }
    #expect(daemon.signal(at: 13).works.isEmpty)
    #expect(daemon.give(.ended(hook, .completed), at: at(14)).works.count == 1)
    let end = daemon.work(.ended(run: 1, nil), at: at(15))
    #expect(end.starts.isEmpty && daemon.stop.exit?.exitStatus == 0)
  }

  /// Its observer is paused by the stop, once it can be.
  @Test func whoseSaveIsLeftBehindIsPausedAfterIt() throws {
    let daemon = DaemonUnderTest(observing: [DidEnterBackground.self, ShouldSaveState.self])
    let save = try #require(daemon.request(.saveState).starts.first)
    for time in [at(10), at(12)] { daemon.give(.clock, at: time) }
    #expect(daemon.signal(at: 13).starts.isEmpty)
    var next = daemon.give(.ended(save, .completed), at: at(14)).starts
    #expect(daemon.kinds(next) == [.didEnterBackground])
    next = daemon.give(.ended(try #require(next.first), .completed), at: at(14)).starts
    #expect(daemon.kinds(next) == [.shouldSaveState])
    daemon.give(.ended(try #require(next.first), .completed), at: at(14))
    #expect(daemon.stop.exit?.exitStatus == 0)
  }

  /// It is cancelled once more at its deadline, and has had its time.
  @Test func whatIsLeftBehindMayTimeOut() throws {
    let (daemon, hook) = try stopsBesideAnAbandonedPause()
    daemon.give(.clock, at: at(33))
    let end = daemon.give(.ended(hook, .failed(Failure(CancellationError()))), at: at(33))
    daemon.give(.ended(try #require(end.starts.first), .completed), at: at(33))
    #expect(daemon.stop.exit?.report.entries.first?.outcome == .timedOut)
  }

  @Test func whatIsLeftBehindForEverIsReported() throws {
    let (daemon, hook) = try stopsBesideAnAbandonedPause()
    for time in [at(33), at(34)] { daemon.give(.clock, at: time) }
    #expect(daemon.stop.exit?.exitStatus == 124)
    #expect(
      daemon.stop.exit?.report.entries.map(\.outcome) == [
        .abandoned(.running), .skipped(.busy),
      ])
    // Nobody counts it twice.
    daemon.give(.ended(hook, .completed), at: at(35))
    #expect(daemon.machine.calls.count == 0 && daemon.machine.calls.abandonedCount == 0)
  }

  /// What runs is known by its call, whatever has become of its observer, and whatever it is.
  @Test(arguments: [LifecycleRequest.pause, .reload, .sleep, .post(Note())], [false, true])
  func aStopWaitsForAllThatStillRuns(_ request: LifecycleRequest, isRemoved: Bool) throws {
    let daemon = DaemonUnderTest(
      observing: [DidEnterBackground.self, ShouldReload.self, Note.self])
    let hook = try #require(daemon.request(request).starts.first)
    for time in [at(10), at(12)] { daemon.give(.clock, at: time) }
    if isRemoved { daemon.give(.remove([ObserverID(value: 1)]), at: at(12)) }
    #expect(daemon.signal(at: 13).starts.isEmpty && daemon.stop.exit == nil)
    let next = daemon.give(.ended(hook, .completed), at: at(14)).starts
    // It is paused now, where it was busy before.
    let isPaused =
      switch request {
      case .pause, .sleep: true
      default: isRemoved
      }
    #expect(daemon.kinds(next).count == (isPaused ? 0 : 1))
    for call in next { daemon.give(.ended(call, .completed), at: at(14)) }
    #expect(daemon.stop.exit?.exitStatus == 0)
  }

  /// It had to end first, and did not; then it is the stop's.
  @Test func aStopWaitsForAPauseThatIsAbandonedInIt() throws {
    let daemon = DaemonUnderTest(observing: [DidEnterBackground.self])
    let hook = try #require(daemon.request(.pause).starts.first)
    daemon.give(.clock, at: at(10))
    daemon.signal(at: 11)
    daemon.give(.clock, at: at(12))
    #expect(daemon.call(hook)?.isAbandoned == false && daemon.stop.exit == nil)
    daemon.give(.ended(hook, .completed), at: at(13))
    #expect(daemon.stop.exit?.exitStatus == 0)
  }

  /// It has the reserve, as each save.
  @Test func aSecondSignalLeavesASaveThatIsWaitedForItsTime() throws {
    let daemon = DaemonUnderTest(observing: [ShouldSaveState.self])
    let save = try #require(daemon.request(.saveState).starts.first)
    for time in [at(10), at(12)] { daemon.give(.clock, at: time) }
    for time in [13, 15] { daemon.signal(at: Int64(time)) }
    daemon.give(.clock, at: at(16))
    #expect(daemon.call(save)?.isCancelled == false && daemon.stop.exit == nil)
    let last = try #require(daemon.give(.ended(save, .completed), at: at(17)).starts.first)
    daemon.give(.ended(last, .completed), at: at(18))
    let entries = try #require(daemon.stop.exit).report.entries
    #expect(entries.map(\.outcome) == [.completed, .completed])
  }

  /// What has changed since is not in it.
  @Test func aSaveThatBeganBeforeTheStopIsFollowedByAnother() throws {
    let daemon = DaemonUnderTest(observing: [ShouldSaveState.self])
    let save = try #require(daemon.request(.saveState).starts.first)
    for time in [1, 3] { daemon.signal(at: Int64(time)) }
    let last = try #require(daemon.give(.ended(save, .completed), at: at(4)).starts.first)
    daemon.give(.ended(last, .completed), at: at(5))
    #expect(daemon.stop.exit?.exitStatus == 0)
  }

  /// Its executor is free again in time.
  @Test(arguments: [Call.Progress.enqueued, .entering])
  func aSaveThatNeverBeganKeepsNoOtherFromBeginning(_ progress: Call.Progress) throws {
    let daemon = DaemonUnderTest(observing: [ShouldSaveState.self])
    let request = LifecycleEvent(.saveState)
    let save = try #require(daemon.give(.event(request), begins: false).starts.first)
    _ = daemon.machine.calls.move(save, to: progress)
    for time in [at(10), at(12)] { daemon.give(.clock, at: time) }
    // While the daemon serves, nobody waits for it again and again.
    #expect(daemon.request(.saveState, at: at(12)).starts.isEmpty)
    let last = try #require(daemon.signal(at: 13).starts.first)
    daemon.give(.ended(save, .completed), at: at(14))
    #expect(daemon.stop.exit == nil)
    daemon.give(.ended(last, .completed), at: at(15))
    #expect(daemon.stop.exit != nil)
  }

  @Test func aSecondSignalEndsTheWait() throws {
    let (daemon, _) = try stopsBesideAnAbandonedPause()
    daemon.signal(at: 15)
    daemon.give(.clock, at: at(16))
    #expect(daemon.stop.exit?.exitStatus == 124)
  }

  /// What fits is nothing to warn of. It is not held back for nothing, or there would be no end.
  @Test func aStopDrainsWhereThereIsTime() {
    let daemon = DaemonUnderTest(.init(stopDelay: .seconds(3)))
    let output = daemon.request(.terminate)
    #expect(
      output.facts.contains { if case .draining(_, .seconds(3)) = $0 { true } else { false } })
    #expect(output.warnings.isEmpty && daemon.stop.isDraining)
    let hurried = DaemonUnderTest(.init(stopDelay: .seconds(3)))
    hurried.give(.stopTimeout(.zero))
    hurried.request(.terminate)
    #expect(!hurried.stop.isDraining && hurried.stop.start != nil)
  }

  /// Added when the time is over and the clock has not run yet, as after a stall. It was tried again and again.
  @Test func whoIsAddedTooLateInADrainIsNotCalled() throws {
    let daemon = DaemonUnderTest(
      .init(stopTimeout: .seconds(10), stopDelay: .seconds(3)), observing: [ShouldSaveState.self])
    daemon.request(.terminate)
    let late = daemon.add(
      [DidFinishLaunching.self, WillEnterForeground.self, ShouldSaveState.self], at: at(6))
    #expect(late.starts.isEmpty)
    #expect(late.ended.flatMap(\.report.entries).map(\.outcome) == [.skipped(.outOfTime)])
    let save = try #require(daemon.give(.clock, at: at(6)).starts.first)
    #expect(daemon.give(.ended(save, .completed), at: at(6)).starts.isEmpty)
    #expect(daemon.stop.exit != nil)
  }

  @Test func nobodyAndNothingIsLeftOfASubjectThatIsGone() {
    let daemon = DaemonUnderTest(.init(stopDelay: .seconds(3)), observing: [ShouldSaveState.self])
    daemon.request(.terminate)
    #expect(daemon.stop.isDraining)
    #expect(daemon.give(.close).removed == [1])
    #expect(!daemon.stop.isDraining && daemon.progress(of: 1) == nil)
  }

  /// The next one is the third.
  @Test func aSignalThatEndsTheDrainCounts() {
    let daemon = DaemonUnderTest(.init(stopDelay: .seconds(5)), observing: [ShouldSaveState.self])
    let exits = [0, 1, 2].map { daemon.signal(at: $0).exitsWith }
    #expect(exits == [nil, nil, Int32(128 + 15)])
  }

  /// A wrapper relays it, and the terminal sends it, too.
  @Test func theSameStopExpeditesNothing() {
    let exits = (1...3).map { _ in daemon.signal().exitsWith }
    #expect(exits == [nil, nil, nil] && daemon.stop.budget?.isHurried == false)
  }

  /// Once for each signal that counted, however many follow it.
  @Test func theSameStopIsSaidOnceForEachThatCounts() {
    let times: [Int64] = [0, 2, 3, 10, 11, 12]
    let said = times.map { tenths in
      daemon.give(
        .event(
          LifecycleEvent(
            .terminate,
            cause: LifecycleCause(.signal(.sigterm, from: .process(pid: 7, uid: 0), coalesced: 1)))),
        at: MonotonicTime(nanoseconds: tenths * 100_000_000)
      ).facts.count { if case .info = $0 { true } else { false } }
    }
    #expect(said == [0, 1, 0, 0, 1, 0])
  }

  /// Who throws a cancellation that nobody has asked for has failed.
  @Test(arguments: [true, false]) func aCancelledTaskIsNoFailure(_ wasAsked: Bool) {
    daemon.add(WorkOptions(form: .task))
    if wasAsked { daemon.request(.terminate) }
    daemon.work(.ended(run: 1, DaemonLifecycle.Failure(CancellationError())))
    let hasFailed =
      if case .workFailed = daemon.machine.registry.termination?.origin { true } else { false }
    #expect((daemon.machine.workFailure == nil) == wasAsked && hasFailed != wasAsked)
  }

  /// The entry of a task that throws once it was asked to end.
  private func taskThatThrows(_ error: any Error, at second: Int64) -> LifecycleReport.Entry? {
    let daemon = DaemonUnderTest()
    daemon.add(WorkOptions(form: .task))
    daemon.request(.terminate)
    daemon.give(.clock, at: at(second))
    daemon.work(.ended(run: 1, DaemonLifecycle.Failure(error)), at: at(second))
    return daemon.stop.exit?.report.entries.first
  }

  /// What it throws then decides nothing, unless its time was over.
  @Test func aTaskThatWasAskedToEndHasNotFailed() {
    let cancelled = taskThatThrows(CancellationError(), at: 9)
    #expect(cancelled?.outcome.isCompleted == true)
    let failed = taskThatThrows(SimulatedFailure(), at: 9)
    #expect(failed?.outcome.isCompleted == false && failed?.severity == 0)
    #expect(taskThatThrows(SimulatedFailure(), at: 10)?.severity == 2)
  }

  /// It comes out of the reserve, and most of that is left for the save.
  @Test func aSecondSignalGivesAQuarterOfTheReserveAsGrace() {
    let daemon = DaemonUnderTest(
      .init(cancellationGrace: .seconds(10), saveReserve: .seconds(8)),
      observing: [DidEnterBackground.self])
    let pause = daemon.signal().starts.first
    daemon.signal(at: 2)
    #expect(daemon.call(pause)?.isCancelled == true && daemon.call(pause)?.next == at(4))
  }

  /// The deliveries that it cuts are reported and let go of, and those who have posted are answered.
  @Test func theThirdSignalEndsTheProcessAtOnce() throws {
    daemon.give(Self.post)
    daemon.signal()
    daemon.signal(at: 2)
    let output = daemon.signal(at: 4)
    #expect(output.exitsWith == 128 + 15 && output.removed == [1])
    #expect(output.answers.count == 1)
    let entries = try #require(daemon.stop.exit?.report.entries)
    #expect(entries.map(\.outcome) == [.abandoned(.running)])
    // Found by an attack: a clock that a test replaces never got further.
    daemon.give(.clock, at: at(4))
    #expect(daemon.machine.deadline > at(4))
    #expect(daemon.machine.registry.state == .terminated)
  }

  @Test func aDaemonThatCannotGoOnHasFailed() {
    let daemon = DaemonUnderTest()
    daemon.give(.lost(LifecycleCause(.api)))
    #expect(daemon.stop.exit?.exitStatus == 70)
  }

  /// Without the bus and the watchdog it does not serve on, and a drain that has begun is over.
  @Test(arguments: [true, false]) func aDaemonThatCannotGoOnDoesNotDrain(drains: Bool) {
    let daemon = DaemonUnderTest(.init(stopDelay: .seconds(5)))
    daemon.add(WorkOptions())
    daemon.add([DidEnterBackground.self])
    if drains { daemon.signal() }
    #expect(daemon.isReady != drains)
    daemon.give(.lost(LifecycleCause(.api)))
    #expect(daemon.stop.start != nil && !daemon.stop.isDraining)
    // The signal that began the drain counts.
    daemon.signal(at: 2)
    #expect(daemon.stop.budget?.isHurried == drains)
    daemon.work(.ended(run: 1, Failure(CancellationError())), of: 1, at: at(2))
    while daemon.stop.exit == nil { daemon.give(.clock, at: daemon.machine.deadline) }
    #expect(daemon.stop.exit?.exitStatus != 1)
  }

  // MARK: Answers

  /// Else whoever has started the daemon would wait for good.
  @Test func aLaunchThatIsOvertakenHasEnded() {
    let daemon = DaemonUnderTest(state: .launching, observing: [DidFinishLaunching.self])
    #expect(daemon.give(.launch { _ in }).launchesEnded == 0)
    #expect(daemon.request(.terminate).launchesEnded == 1)
  }

  @Test func allWhoWaitAreAnswered() throws {
    let daemon = DaemonUnderTest(state: .launching, observing: [DidFinishLaunching.self])
    let (launches, ends) = (Waiters(), Waiters())
    let launch = LifecycleMachine.Input.launch { _ in launches.answer() }
    let exit = LifecycleMachine.Input.awaitExit { _ in ends.answer() }
    var outputs = [launch, exit, launch, exit].map { daemon.give($0) }
    let hook = try #require(outputs[0].starts.first)
    outputs += [daemon.request(.terminate), daemon.give(.ended(hook, .completed))]
    for message in outputs.flatMap(\.messages) {
      switch message {
      case .launchEnded(let report, let waiters): waiters(report)
      case .exited(let exit, let waiters): waiters(exit)
      default: break
      }
    }
    #expect(launches.answered == 2 && ends.answered == 2)
  }

  private final class Waiters: Sendable {
    private let count = Mutex(0)
    var answered: Int { count.withLock { $0 } }
    func answer() { count.withLock { $0 += 1 } }
  }

  /// A mock may begin in a later state, or the daemon may have been terminated before.
  @Test func aLaunchWithNothingToLaunchIsAnsweredAtOnce() {
    #expect(daemon.give(.launch { _ in }).launchesEnded == 1)
  }

  /// For those who would have received it, and nobody else; after the end nobody can be named.
  @Test func aPostThatComesTooLateIsAnswered() throws {
    daemon.add([ShouldSaveState.self])
    let save = try #require(daemon.request(.terminate).starts.first)
    #expect(daemon.give(Self.post).answers == [["Int"]])
    let last = try #require(daemon.give(.ended(save, .completed)).starts.first)
    #expect(daemon.give(.ended(last, .completed)).removed == [1, 2])
    let late = daemon.give(Self.post)
    #expect(late.answers == [["all observers"]] && late.registrations == [0])
  }

  /// Whether they wait, are being delivered, or come later: each once.
  @Test func theEndOfTheSubjectAnswersAllPosts() throws {
    let post = try #require(daemon.give(Self.post).starts.first)
    let inputs: [LifecycleMachine.Input] = [
      Self.post, .close, .close, .ended(post, .completed), Self.post,
    ]
    let outputs = inputs.map { daemon.give($0) }
    #expect(outputs.map(\.answers.count) == [0, 2, 0, 0, 1])
  }

  /// Whoever waits for the end is answered once, also who comes later.
  @Test func theEndIsAnswered() throws {
    daemon.give(.awaitExit { _ in })
    let save = try #require(daemon.request(.terminate).starts.first)
    let inputs: [LifecycleMachine.Input] = [.ended(save, .completed), .awaitExit { _ in }]
    let answers = inputs.map { input in
      daemon.give(input).messages.count { if case .exited = $0 { true } else { false } }
    }
    #expect(answers == [1, 1])
  }

  /// `run` has waited, and the process has the exit grace to end; also when `run` comes to wait after the end.
  @Test(arguments: [(true, 3), (false, 4)])
  func theExitIsExpectedFromTheEndOn(waitsBefore: Bool, end: Int64) throws {
    if waitsBefore { daemon.give(.exitExpected) }
    let save = try #require(daemon.request(.terminate).starts.first)
    #expect(daemon.stop.deadline == .distantFuture)
    daemon.give(.ended(save, .completed), at: at(1))
    #expect(daemon.stop.exit != nil && (daemon.stop.deadline == at(3)) == waitsBefore)
    if !waitsBefore { daemon.give(.exitExpected, at: at(2)) }
    #expect(daemon.stop.deadline == at(end))
    let isOverdue = [end - 1, end, end + 1].map { daemon.give(.clock, at: at($0)).isOverdue }
    #expect(isOverdue == [false, true, false])
  }

  // MARK: Newcomers

  /// As one that was there before: it is where it would be had it waited for its turn.
  @Test(arguments: [LifecycleState.foreground, .background])
  func aNewcomerWithoutAHookForWhatItHasMissedIsSentNothing(_ state: LifecycleState) {
    let (skips, waits) = (DaemonUnderTest(state: state), DaemonUnderTest(state: state))
    let output = skips.add([ShouldSaveState.self, DidEnterBackground.self])
    #expect(output.messages.isEmpty && skips.progress(of: 1)?.reachedState == state)
    waits.give(.hold)
    waits.add([ShouldSaveState.self])
    #expect(waits.progress(of: 1)?.reachedState == .background)
    waits.give(.release)
    #expect(waits.progress(of: 1) == skips.progress(of: 1))
    #expect(skips.request(.terminate).starts.count == 1)
  }

  /// The others go on: who comes in the midst of a step waits for its turn.
  @Test func aNewcomerInTheMidstOfAStepWaits() throws {
    let save = try #require(daemon.request(.saveState).starts.first)
    daemon.add([ShouldSaveState.self])
    #expect(daemon.progress(of: 2)?.reachedState == .background)
    daemon.give(.ended(save, .completed))
    #expect(daemon.progress(of: 2)?.reachedState == .foreground)
  }

  /// Found by a reading: it was waiting to be told of the launch, for which it has no hook, and was not in the report.
  @Test(arguments: [false, true]) func aStopSavesANewcomerWhoseTurnHasNotCome(isHeld: Bool) throws {
    let save = isHeld ? nil : daemon.request(.saveState).starts.first
    if isHeld { daemon.give(.hold) }
    daemon.add([ShouldSaveState.self])
    daemon.add([ShouldSaveState.self, DidFinishLaunching.self])
    var calls = daemon.request(.terminate).starts
    if let save { calls = daemon.give(.ended(save, .completed)).starts }
    var count = 0
    while let call = calls.first {
      count += 1
      calls = daemon.give(.ended(call, .completed)).starts
    }
    #expect(count == 2)
  }

  /// So one failed check has no consequence.
  @Test func theTickAfterAFailedCheckChecksAgain() throws {
    let daemon = DaemonUnderTest(watchdogPeriod: .seconds(8), observing: [CheckHealth.self])
    daemon.machine.health.arm(at: at(0))
    var checks: [Bool] = []
    for (number, isWell) in [true, true, false, true].enumerated() {
      let now = at(Int64(3 * number))
      let output = daemon.give(.watchdogTick(stall: .zero), at: now)
      checks.append(!output.starts.isEmpty)
      guard let check = output.starts.first, let round = output.healthRound else { continue }
      daemon.give(.healthAsked(round: round), at: now)
      daemon.give(.healthAnswer(.pool(round: round)), at: now)
      let failed = LifecycleMachine.CallEnd.failed(DaemonLifecycle.Failure(CancellationError()))
      daemon.give(.ended(check, isWell ? .completed : failed), at: now)
    }
    #expect(checks == [true, false, true, true])
  }
}
