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
    let warnings = daemon.work(.progressed(run: 1, at: nil), at: at(30)).warnings
    #expect(warnings == ["work has made no progress for 30 s: the daemon is not healthy."])
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
        readyWithin: .seconds(5), restarts: .backoff(initial: .seconds(1), maximumFailures: 1)))
    if wasReady { daemon.work(.ready(run: 1)) }
    daemon.work(.ended(run: 1, failure))
    #expect(!daemon.isReady && !daemon.machine.isTerminating)
    daemon.give(.clock, at: at(1))
    daemon.work(.ended(run: 2, failure), at: at(1))
    #expect(daemon.machine.isTerminating == wasReady)
  }

  /// A restart is a start, and no call waits for it.
  @Test func aRestartThatIsNotReadyInTimeHasFailed() {
    daemon.add(WorkOptions(readyWithin: .seconds(5), restarts: .backoff(initial: .seconds(1))))
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
    daemon.add(WorkOptions(readyWithin: .seconds(5), restarts: .backoff(initial: .seconds(1))))
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

  /// What an earlier run says late is about another.
  @Test func anEarlierRunSaysNothing() {
    daemon.add(WorkOptions(readyWithin: .seconds(5), restarts: .backoff(initial: .seconds(1))))
    daemon.work(.ended(run: 1, failure))
    daemon.give(.clock, at: at(1))
    daemon.work(.ready(run: 1), at: at(1))
    #expect(!daemon.isReady)
    daemon.work(.ready(run: 2), at: at(1))
    #expect(daemon.isReady)
  }
}
