// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Testing

@testable import DaemonLifecycle

/// The rules of work, one by one.
@Suite struct WorkRuleTests {
  private let daemon = DaemonUnderTest(watchdogPeriod: .seconds(20))
  private let failure = DaemonLifecycle.Failure(SimulatedFailure())

  /// The watchdog is not pinged, and is again once it goes on.
  @Test func whatStallsIsNotHealthy() throws {
    let daemon = DaemonUnderTest(state: .launching, watchdogPeriod: .seconds(20))
    daemon.add(WorkOptions(stallsAfter: .seconds(30)))
    daemon.give(.launch { _ in })
    func check(at second: Int64) -> [String] {
      var said = daemon.give(.watchdogTick(stall: .zero), at: at(second)).verdicts
      if let round = daemon.machine.health.unasked {
        daemon.give(.healthAsked(round: round), at: at(second))
        said += daemon.give(.healthAnswer(.pool(round: round)), at: at(second)).verdicts
      }
      return said
    }
    #expect(check(at: 10) == ["healthy"] && daemon.machine.deadline == at(30))
    let asked = daemon.give(.clock, at: at(30)).works.map(\.action)
    guard case .askForProgress(1)? = asked.first else {
      Issue.record("\(asked)")
      return
    }
    let said = daemon.work(.progressed(run: 1, at: nil), at: at(30))
    #expect(said.warnings == ["work has made no progress for 30 s: the daemon is not healthy."])
    #expect(said.stalled == "work")
    #expect(check(at: 40) == ["work has made no progress for 30 s"])
    // Somebody looks again each second.
    #expect(daemon.machine.deadline == at(31))
    daemon.give(.clock, at: at(45))
    #expect(
      daemon.work(.progressed(run: 1, at: at(44)), at: at(45)).infos == [
        "work makes progress again."
      ])
    #expect(check(at: 50) == ["healthy"] && daemon.machine.deadline == at(74))
  }

  /// What was ready once has not failed to start: without another restart its error ends the daemon.
  @Test(arguments: [false, true]) func theLastFailureEndsTheDaemonOnceItWasReady(wasReady: Bool) {
    daemon.add(
      WorkOptions(
        readyWithin: .seconds(5), restarts: .backoff(initialDelay: .seconds(1), maximumFailures: 1))
    )
    if wasReady { daemon.work(.ready(run: 1)) }
    daemon.work(.ended(run: 1, failure))
    #expect(!daemon.isReady && !daemon.machine.isTerminating)
    daemon.give(.clock, at: at(1))
    daemon.work(.ended(run: 2, failure), at: at(1))
    #expect(daemon.machine.isTerminating == wasReady)
  }

  /// A restart is a start, and no call waits for it.
  @Test func aRestartThatIsNotReadyInTimeHasFailed() {
    daemon.add(WorkOptions(readyWithin: .seconds(5), restarts: .backoff(initialDelay: .seconds(1))))
    daemon.work(.ready(run: 1))
    daemon.work(.ended(run: 1, failure))
    daemon.give(.clock, at: at(1))
    #expect(daemon.machine.deadline == at(6) && !daemon.isReady)
    let actions = daemon.give(.clock, at: at(6)).works.map(\.action)
    guard case .cancel(2)? = actions.first else {
      Issue.record("\(actions)")
      return
    }
    let warnings = daemon.work(
      .ended(run: 2, DaemonLifecycle.Failure(CancellationError())), at: at(7)
    ).warnings
    #expect(warnings == ["work restarts in 2 s, after failure 2 of 15: not ready after 5 s"])
    #expect(daemon.machine.deadline == at(9))
  }

  /// Not of what is done when it is done.
  @Test(arguments: [
    (WorkOptions.Form.foreground, false, ["It is run again after the next resume."]),
    (.task, false, ["It is not run again."]), (.foreground, true, []),
  ])
  func whatEndsByItselfIsSaid(form: WorkOptions.Form, mayReturn: Bool, what: [String]) {
    daemon.add(WorkOptions(form: form, mayReturn: mayReturn))
    let said = daemon.work(.ended(run: 1, nil)).infos
    #expect(said == what.map { "work has ended by itself. \($0)" })
  }

  /// A batch that asks for the end as its last statement.
  @Test(arguments: [Duration.zero, .seconds(9)]) func whatEndsInAStopIsNotSaid(stopDelay: Duration)
  {
    let daemon = DaemonUnderTest(.init(stopDelay: stopDelay), observing: [DidEnterBackground.self])
    daemon.add(WorkOptions(form: .task))
    daemon.request(.terminate)
    #expect(daemon.work(.ended(run: 1, nil)).infos.isEmpty && daemon.work()?.note == nil)
  }

  /// A second signal cancels it, before its pause could begin.
  @Test func anErrorThatNoReportHasIsLogged() {
    daemon.add(WorkOptions())
    daemon.add([DidEnterBackground.self])
    daemon.signal()
    daemon.signal(at: 2)
    let said = daemon.work(.ended(run: 1, failure), of: 1, at: at(2)).warnings
    #expect(said == ["work failed while it ended: \(failure.text)"])
  }

  /// It has not been missed: nothing is said of a launch and a resume as they should be.
  @Test func whatIsReadyInTimeIsNotMissed() {
    let daemon = DaemonUnderTest(state: .launching)
    daemon.add(WorkOptions(readyWithin: .seconds(5)))
    daemon.give(.launch { _ in })
    for run in 1...2 as ClosedRange<UInt64> {
      let ready = daemon.work(.ready(run: run))
      #expect(ready.warnings == [] && ready.infos == [] && daemon.isReady)
      daemon.request(.pause)
      daemon.work(.ended(run: run, nil))
      daemon.request(.resume)
    }
  }

  /// The operator reads why, and what it was that came back.
  @Test func thatItIsMissedHasACause() {
    daemon.add(WorkOptions(readyWithin: .seconds(5), restarts: .backoff(initialDelay: .seconds(1))))
    daemon.work(.ready(run: 1))
    func changes(_ output: DaemonUnderTest.Output) -> [String] {
      output.facts.compactMap {
        guard case .positionChanged(let cause, let snapshot) = $0 else { return nil }
        return "\(cause), without \(snapshot.unentered)"
      }
    }
    let failed = daemon.work(.ended(run: 1, failure))
    #expect(changes(failed) == [#"work threw SimulatedFailure(), without ["work"]"#])
    daemon.give(.clock, at: at(1))
    #expect(changes(daemon.work(.ready(run: 2), at: at(1))) == ["work is ready, without []"])
  }

  // MARK: Not ready for a while

  private func said(_ lack: String?, change: UInt64) -> [String] {
    let output = daemon.work(.readiness(run: 1, lack: lack, change: change))
    let changes = output.facts.compactMap { fact -> String? in
      guard case .positionChanged(let cause, let snapshot) = fact else { return nil }
      return "\(cause): \(snapshot.unentered)"
    }
    return output.warnings + output.infos + changes
  }

  /// It is as healthy as before, and another reason is not another warning.
  @Test func whatSaysThatItIsNotReadyIsMissedUntilItIs() {
    daemon.add(WorkOptions())
    #expect(daemon.isReady)
    #expect(
      said("the database is down", change: 1) == [
        "Not ready without work (the database is down).",
        #"work is not ready: ["work (the database is down)"]"#,
      ])
    #expect(!daemon.isReady && daemon.machine.stalls.isEmpty)
    #expect(
      said("the queue is full", change: 2) == [
        #"work is not ready: ["work (the queue is full)"]"#
      ])
    #expect(
      said(nil, change: 3) == ["Ready again.", "work is ready: []"])
    #expect(daemon.isReady)
  }

  /// Two threads say two things: the core may receive them in either order.
  @Test func theLastChangeCounts() {
    daemon.add(WorkOptions())
    #expect(said(nil, change: 2).isEmpty && said("down", change: 1).isEmpty && daemon.isReady)
  }

  /// Also while it hangs, or waits to be run again: otherwise each failure would have it come and go.
  @Test func aReasonHoldsUntilTheNextRun() {
    daemon.add(
      WorkOptions(stallsAfter: .seconds(30), restarts: .backoff(initialDelay: .seconds(1))))
    _ = said("down", change: 1)
    daemon.give(.clock, at: at(30))
    daemon.work(.progressed(run: 1, at: nil), at: at(30))
    #expect(!daemon.isReady)
    daemon.work(.ended(run: 1, failure), at: at(30))
    #expect(!daemon.isReady)
    daemon.give(.clock, at: at(31))
    #expect(daemon.isReady)
  }

  /// It has been ready: it drains, and the launch goes on.
  @Test func thatItWasReadyCountsHoweverLateItComes() {
    let daemon = DaemonUnderTest(state: .launching)
    daemon.add(WorkOptions(drains: true, readyWithin: .seconds(5)))
    daemon.give(.launch { _ in })
    daemon.work(.readiness(run: 1, lack: "down", change: 2))
    daemon.work(.readiness(run: 1, lack: nil, change: 1))
    #expect(!daemon.machine.registry.isLaunchTransition && !daemon.isReady)
    daemon.work(.readiness(run: 1, lack: nil, change: 3))
    #expect(daemon.isReady)
  }

  /// It has said that it is not ready yet.
  @Test func aLaunchGoesOnWaiting() {
    let daemon = DaemonUnderTest(state: .launching)
    daemon.add(WorkOptions(readyWithin: .seconds(5)))
    daemon.give(.launch { _ in })
    daemon.work(.readiness(run: 1, lack: "the database is down", change: 1))
    #expect(daemon.machine.registry.isLaunchTransition && !daemon.isReady)
    daemon.work(.readiness(run: 1, lack: nil, change: 2))
    #expect(!daemon.machine.registry.isLaunchTransition && daemon.isReady)
  }

  /// It has requests to finish.
  @Test func whatIsNotReadyForAWhileDrains() {
    daemon.add(WorkOptions(drains: true, readyWithin: .seconds(5)))
    daemon.work(.readiness(run: 1, lack: nil, change: 1))
    daemon.work(.readiness(run: 1, lack: "down", change: 2))
    let actions = daemon.request(.pause).works.map { "\($0.action)" }
    #expect(actions == ["finish(run: 1)"])
  }

  /// A queue that is empty for an hour is no stall where the work may idle; a job that hangs is one.
  @Test(arguments: [false, true]) func aWaitIsProgressOfWorkThatMayIdle(mayIdle: Bool) {
    daemon.add(WorkOptions(stallsAfter: .seconds(30), mayIdle: mayIdle))
    daemon.give(.clock, at: at(30))
    daemon.work(.progressed(run: 1, at: nil, waited: at(30)), at: at(30))
    #expect(daemon.machine.stalls.isEmpty == mayIdle)
    daemon.give(.clock, at: at(60))
    daemon.work(.progressed(run: 1, at: at(20), waited: at(30)), at: at(60))
    #expect(daemon.machine.stalls == ["work has made no progress for 30 s"])
  }

  // MARK: Runs

  /// What an earlier run says late is about another.
  @Test func anEarlierRunSaysNothing() {
    daemon.add(WorkOptions(readyWithin: .seconds(5), restarts: .backoff(initialDelay: .seconds(1))))
    daemon.work(.ended(run: 1, failure))
    daemon.give(.clock, at: at(1))
    daemon.work(.ready(run: 1), at: at(1))
    #expect(!daemon.isReady && !daemon.isIdle)
    daemon.work(.ready(run: 2), at: at(1))
    #expect(daemon.isReady)
  }

  /// Also a task, since the pauses have no more time.
  @Test func aSecondSignalCancelsWorkBeforeItsPause() {
    daemon.add(WorkOptions())
    daemon.add(WorkOptions(form: .task))
    daemon.add([DidEnterBackground.self])
    daemon.signal()
    #expect(daemon.signal(at: 2).works.map(\.work) == [1, 2])
  }

  // MARK: Callers

  /// The caller has its error, and goes on without that work.
  @Test func whoseCallerHasGoneOnIsNotMissed() throws {
    daemon.add(WorkOptions(readyWithin: .seconds(5), hasCaller: true))
    let id = try #require(daemon.work()?.id)
    daemon.work(.ready(run: 1))
    let actions = daemon.work(.ended(run: 1, failure)).works.map(\.action)
    guard case .answer(_?)? = actions.last else {
      Issue.record("\(actions)")
      return
    }
    daemon.give(.remove([id]))
    #expect(daemon.isReady && daemon.request(.pause).ended.count == 1)
  }

  /// In its backoff, in which a launch or a resume waits for it.
  @Test func aCallerThatIsCancelledLeavesNothingToWaitFor() {
    daemon.add(
      WorkOptions(
        readyWithin: .seconds(60), restarts: .backoff(initialDelay: .seconds(10)), hasCaller: true))
    daemon.work(.ended(run: 1, failure))
    daemon.work(.callerCancelled)
    #expect(daemon.request(.pause).ended.map(\.report.cause.description) == ["a call"])
    #expect(daemon.machine.registry.state == .background && daemon.isIdle)
  }

  /// It is asked to end, and takes its time.
  @Test func whoseCallerIsCancelledIsNotMissed() {
    daemon.add(
      WorkOptions(
        readyWithin: .seconds(5), restarts: .backoff(initialDelay: .seconds(1)), hasCaller: true))
    daemon.work(.ready(run: 1))
    daemon.work(.ended(run: 1, failure))
    daemon.give(.clock, at: at(1))
    #expect(!daemon.isReady)
    daemon.work(.callerCancelled, at: at(1))
    #expect(daemon.isReady && daemon.work()?.run != nil)
  }

  /// Its body has had its time.
  @Test(arguments: [false, true]) func aCallerIsAnsweredOnceAStopHasAbandonedIts(isOverdue: Bool) {
    daemon.add(WorkOptions(hasCaller: true))
    daemon.signal()
    if isOverdue { daemon.give(.clock, at: daemon.machine.deadline) }
    let actions = daemon.work(.callerCancelled, at: daemon.machine.now).works.map(\.action)
    let isAnswered = actions.contains { if case .answer = $0 { true } else { false } }
    #expect(isAnswered == isOverdue)
  }

  // MARK: Starts

  /// Nobody waits for its start any more, and it can't be tried again.
  @Test func theLastFailureEndsTheDaemonOnceItsStartWasGivenUp() {
    daemon.add(
      WorkOptions(
        readyWithin: .seconds(5), restarts: .backoff(initialDelay: .seconds(9), maximumFailures: 1))
    )
    daemon.work(.ended(run: 1, failure))
    daemon.give(.clock, at: at(5))
    daemon.give(.clock, at: at(9))
    daemon.work(.ended(run: 2, failure), at: at(9))
    #expect(daemon.machine.isTerminating == true)
  }

  /// Its last failure in a start: what is shown says no longer that it runs.
  @Test func aStartThatFailsIsShownAsThat() {
    daemon.add(
      WorkOptions(
        readyWithin: .seconds(30), restarts: .backoff(initialDelay: .seconds(1), maximumFailures: 1)
      ))
    daemon.work(.ended(run: 1, failure))
    daemon.give(.clock, at: at(1))
    #expect(daemon.work()?.published?.contains("runs again") == true)
    daemon.work(.ended(run: 2, failure), at: at(2))
    #expect(daemon.work()?.published == "work has failed once: \(failure.text)")
    #expect(!daemon.isReady)
  }

  /// Nobody waits for it any more, so that no report has its error. It is tried again as every start is.
  @Test func aStartThatFailsOnceItWasGivenUpIsTriedAgain() {
    daemon.add(WorkOptions(readyWithin: .seconds(5)))
    daemon.give(.clock, at: at(5))
    let warnings = daemon.work(.ended(run: 1, failure), at: at(6)).warnings
    #expect(warnings.first == "work failed before it was ready: \(failure.text)")
    #expect(!daemon.isReady && daemon.machine.deadline > at(6))
    let actions = daemon.give(.clock, at: daemon.machine.deadline).works.map(\.action)
    guard case .begin(2, _)? = actions.first else {
      Issue.record("\(actions)")
      return
    }
  }

  /// The launch waits for it, and it waits to be run again: a stop waits for neither.
  @Test func aStopDoesNotWaitForARestart() {
    let daemon = DaemonUnderTest(state: .launching)
    daemon.add(
      WorkOptions(readyWithin: .seconds(60), restarts: .backoff(initialDelay: .seconds(30))))
    daemon.give(.launch { _ in })
    daemon.work(.ended(run: 1, failure))
    #expect(daemon.stop.exit == nil)
    daemon.signal()
    #expect(daemon.stop.exit != nil)
  }

  /// A migration is not done again because it took long.
  @Test func whatReturnsLateIsNotBegunAgain() {
    daemon.add(WorkOptions(readyWithin: .seconds(5), mayReturn: true))
    daemon.give(.clock, at: at(5))
    #expect(!daemon.isReady)
    daemon.work(.ended(run: 1, nil), at: at(20))
    #expect(daemon.isReady && daemon.machine.deadline == .distantFuture)
  }

  /// Nobody waits for it any more, so that it has a limit of its own.
  @Test func aRestartThatHangsHasFailedToo() {
    daemon.add(WorkOptions(readyWithin: .seconds(5), restarts: .backoff(initialDelay: .seconds(4))))
    daemon.work(.ended(run: 1, failure))
    daemon.give(.clock, at: at(4))
    daemon.give(.clock, at: at(5))
    let actions = daemon.give(.clock, at: at(9)).works.map(\.action)
    guard case .cancel(2)? = actions.first else {
      Issue.record("\(actions)")
      return
    }
  }

  /// Its start took too long, and is neither asked for again while its body runs nor forgotten by a stop.
  @Test func aStopPausesWhatWasReadyLate() throws {
    daemon.add(WorkOptions(drains: true, readyWithin: .seconds(5)))
    daemon.give(.clock, at: at(5))
    daemon.give(.hold, at: at(5))
    for second in 6...9 as ClosedRange<Int64> { daemon.give(.clock, at: at(second)) }
    daemon.add([WillEnterForeground.self], phase: LifecyclePhase(order: -1))
    let late = try #require(daemon.give(.release, at: at(9)).starts.first)
    daemon.work(.ready(run: 1), of: 1, at: at(10))
    daemon.request(.terminate, at: at(10))
    let actions = daemon.give(.ended(late, .completed), at: at(10)).works.map(\.action)
    guard case .finish(1)? = actions.first else {
      Issue.record("\(actions)")
      return
    }
    #expect(daemon.stop.exit == nil)
  }

  /// It would never run again, and nobody would know.
  @Test func workWhoseLastRoundDoesNotEndHasStalled() throws {
    daemon.add(WorkOptions())
    daemon.request(.pause, at: at(1))
    for time in [at(11), at(13)] { daemon.give(.clock, at: time) }
    #expect(daemon.machine.stalls == [])
    daemon.request(.resume, at: at(14))
    #expect(daemon.machine.stalls == ["work: its last round has not ended"])
    daemon.request(.pause, at: at(15))
    #expect(daemon.machine.stalls == [])
    daemon.request(.resume, at: at(16))
    let next = daemon.work(.ended(run: 1, nil), at: at(17))
    #expect(daemon.machine.stalls == [] && next.works.count == 1)
  }

  /// What is not ready, and does not end when it is cancelled, is not healthy, as what has stalled.
  @Test func whatIgnoresItsCancellationIsNotHealthy() {
    daemon.add(WorkOptions(readyWithin: .seconds(5), restarts: .backoff()))
    daemon.give(.clock, at: at(5))
    #expect(daemon.machine.stalls == ["work: not ready after 5 s"])
    daemon.work(.ended(run: 1, nil), at: at(9))
    #expect(daemon.machine.stalls == [])
  }

  // MARK: What is said

  /// It ran well until it returned: systemd's count begins anew, unless other work fails.
  @Test(arguments: [false, true]) func whatReturnsHasRecovered(besideAnother: Bool) {
    let restarts = RestartPolicy.backoff(initialDelay: .seconds(1))
    daemon.add(WorkOptions(restarts: restarts))
    daemon.add(WorkOptions(restarts: restarts))
    if besideAnother { daemon.work(.ended(run: 1, failure), of: 2) }
    daemon.work(.ended(run: 1, failure), of: 1)
    daemon.give(.clock, at: at(1))
    let said = daemon.work(.ended(run: 2, nil), of: 1, at: at(2)).facts
    #expect(said.contains { if case .recovered = $0 { true } else { false } } != besideAnother)
  }

  /// It runs longer than it has ever waited: what it has failed with is history, and counts until the period is over.
  @Test func aFailureIsShownUntilItRunsForLong() throws {
    let restarts = RestartPolicy.backoff(initialDelay: .seconds(1), maximumDelay: .seconds(10))
    daemon.add(WorkOptions(restarts: restarts))
    daemon.work(.ended(run: 1, failure))
    func note(at second: Int64) -> String? {
      daemon.give(.clock, at: at(second))
      return daemon.work()?.published
    }
    #expect(note(at: 1) == "work has failed once, and runs again: \(failure.text)")
    #expect(note(at: 10) != nil && note(at: 11) == nil)
    daemon.work(.ended(run: 2, failure), at: at(12))
    #expect(daemon.work()?.published == "work has failed 2 times: \(failure.text)")
  }

  /// Each has its own, also two of one name.
  @Test func aNoteIsOfOneWork() {
    var notes: [StatusNote] = []
    for _ in 1...2 {
      daemon.add(WorkOptions())
      for case .statusNote(let note, _) in daemon.work(.ended(run: 1, nil)).facts {
        notes.append(note)
      }
    }
    #expect(notes.count == 2 && notes[0] != notes[1])
  }

  /// A stop, or SIGSTOP: the clock comes late because nobody had the processor.
  @Test func whoStoodStillHasNotStalled() {
    daemon.add(WorkOptions(stallsAfter: .seconds(16)))
    #expect(daemon.give(.clock, at: at(21)).works.isEmpty && daemon.machine.deadline == at(37))
    #expect(daemon.give(.clock, at: at(37)).works.count == 1)
  }

  /// It is in the report, and said once.
  @Test func aFailureInAStopIsInItsReport() throws {
    daemon.add(WorkOptions())
    let pause = try #require(
      daemon.add([DidEnterBackground.self]).starts.first ?? daemon.request(.terminate).starts.first)
    #expect(daemon.work(.ended(run: 1, failure), of: 1).warnings == [])
    daemon.give(.ended(pause, .completed))
    let entry = try #require(daemon.stop.exit?.report["work", DidEnterBackground.self])
    #expect(entry.outcome == .failed(SimulatedFailure()) && daemon.stop.exit?.exitStatus == 0)
  }

  @Test func whatHasNotBegunDoesNotEnd() {
    let daemon = DaemonUnderTest(state: .launching)
    daemon.add(WorkOptions(form: .task))
    daemon.add([DidFinishLaunching.self])
    let launch = daemon.give(.launch { _ in }).starts.first
    daemon.request(.terminate)
    if let launch { daemon.give(.ended(launch, .completed)) }
    #expect(daemon.stop.exit?.report.entries.contains { $0.observer == "work" } == false)
  }
}
