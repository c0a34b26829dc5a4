// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import TestSupport
import Testing

@testable import DaemonLifecycle

/// How a stop of 30 s, 6 of them for the save, is shared by what has to end in it.
@Suite struct StopShareTests {
  private let daemon = DaemonUnderTest(
    LifecycleConfiguration(
      hookTimeout: .seconds(60), stopTimeout: .seconds(30), saveReserve: .seconds(6),
      exitGrace: .zero))

  /// When a call must be over, its grace included.
  private func end(
    of call: CallID?, _ daemon: DaemonUnderTest? = nil
  ) throws -> MonotonicTime {
    let call = try #require((daemon ?? self.daemon).call(call))
    return call.deadline.advanced(by: call.grace)
  }

  /// While it runs: the save after it has all that is left.
  @Test func theBodyCountsBesideThePauses() throws {
    daemon.add([DidEnterBackground.self])
    daemon.add([ShouldSaveState.self])
    daemon.addBody()
    let pause = daemon.request(.terminate).starts.first
    #expect(try end(of: pause) == at(12))
    daemon.give(.ended(try #require(pause), .completed))
    let save = daemon.work(.ended(run: 1, nil)).starts.first
    #expect(try end(of: save) == at(30))
  }

  /// Ten tasks of one concurrent phase are one group, and what they claim to drain is kept for them.
  @Test(arguments: [nil, 12] as [Int?]) func tasksCountAsTheyEnd(draining limit: Int?) throws {
    daemon.add([DidEnterBackground.self])
    let work = WorkOptions(form: .throughout, drains: limit != nil)
    for _ in 1...10 {
      daemon.add(
        work, phase: LifecyclePhase(order: 1, isConcurrent: true),
        timeout: limit.map { .seconds($0) })
    }
    let pause = daemon.request(.terminate).starts.first
    #expect(try end(of: pause) == at(0).advanced(by: .seconds(limit == nil ? 12 : 5.5)))
  }

  /// A migration that is done has no share.
  @Test func aTaskThatHasEndedDoesNotCount() throws {
    daemon.add([DidEnterBackground.self])
    daemon.add(WorkOptions(form: .throughout, mayReturn: true))
    daemon.work(.ended(run: 1, nil))
    let pause = try #require(daemon.request(.terminate).starts.first)
    #expect(try end(of: pause) == at(24))
    daemon.give(.ended(pause, .completed))
    #expect(daemon.stop.exit?.report.entries.count == 1)
  }

  @Test func aTaskWhoseDrainDoesNotFitIsWarnedOf() {
    let warnings = daemon.add(WorkOptions(form: .throughout, drains: true), timeout: .seconds(300))
      .warnings
    #expect(
      warnings.first?.hasPrefix("work may take 300 s, but") == true, "\(warnings)")
  }

  /// Once the launch has ended, beside what else it is to end; also of a task, whose end follows the pauses.
  @Test func limitsAreWarnedOfAtTheLaunch() {
    let daemon = DaemonUnderTest(
      LifecycleConfiguration(
        stopTimeout: .seconds(30), saveReserve: .seconds(6), exitGrace: .zero), state: .launching)
    for _ in 1...2 {
      daemon.add(WorkOptions(form: .throughout, drains: true), timeout: .seconds(20))
    }
    daemon.add([DidEnterBackground.self], timeout: .seconds(2))
    let warnings = daemon.give(.launch { _ in }).warnings
    #expect(warnings.count == 2, "\(warnings)")
    #expect(
      warnings.allSatisfy { $0.hasPrefix("work may take 20 s, but a stop leaves only 9 s") },
      "\(warnings)")
  }

  /// It shares its time with two pauses, and ends before the reserve: the save after it is the stop's.
  @Test func aSaveThatTheStopFindsUnderWay() throws {
    for _ in 1...2 { daemon.add([DidEnterBackground.self]) }
    daemon.add([ShouldSaveState.self])
    let save = daemon.request(.saveState).starts.first
    daemon.request(.terminate)
    #expect(try end(of: save) == at(8))
  }

  /// However short that is: the stop has 12 s, and its saves 6 of them.
  @Test func aSaveUnderWayLeavesThePausesTheirPart() throws {
    daemon.add([DidEnterBackground.self])
    daemon.add([ShouldSaveState.self])
    let save = daemon.request(.saveState).starts.first
    daemon.give(.stopTimeout(.seconds(13)))
    daemon.request(.terminate)
    #expect(try end(of: save) == at(3))
  }

  /// One that is cut off is not repeated: it has an equal part, whatever a pause claims.
  @Test(arguments: [nil, 5, 30] as [Int64?]) func aSaveUnderWayHasItsPart(limit: Int64?) throws {
    daemon.add([DidEnterBackground.self], timeout: limit.map { .seconds($0) })
    daemon.add([ShouldSaveState.self])
    let save = daemon.request(.saveState).starts.first
    daemon.request(.terminate)
    #expect(try end(of: save) == at(12))
  }

  /// Nothing has to end before the stop's own save: it has half of all the time, the reserve too.
  @Test func aSaveUnderWayThatNothingFollows() throws {
    daemon.add([ShouldSaveState.self])
    let save = daemon.request(.saveState).starts.first
    daemon.request(.terminate)
    #expect(try end(of: save) == at(15))
  }

  /// Nobody is paused any more: it has a part of the reserve, and the save after it the other.
  @Test func aSecondSignalLeavesASaveUnderWayItsPart() throws {
    daemon.add([DidEnterBackground.self])
    daemon.add([ShouldSaveState.self])
    let save = daemon.request(.saveState).starts.first
    daemon.signal()
    daemon.signal(at: 2)
    #expect(try end(of: save) == at(5))
  }

  @Test func aSecondSignalLeavesASaveItsReserve() throws {
    daemon.add([ShouldSaveState.self])
    let save = daemon.signal().starts.first
    daemon.signal(at: 2)
    #expect(try end(of: save) == at(8))
  }

  /// With as many groups as there are, an equal share would be of no use.
  @Test(arguments: [1, 100, 10_000]) func whileThereIsTimeNobodyIsSkipped(count: Int) throws {
    let daemon = DaemonUnderTest(
      LifecycleConfiguration(stopTimeout: .seconds(9)),
      observing: [DidEnterBackground.self, ShouldSaveState.self])
    for _ in 1..<count { daemon.add([DidEnterBackground.self, ShouldSaveState.self]) }
    var next = daemon.signal().starts.first
    var called = 0
    // The first hangs until it is abandoned.
    let abandoned = try end(of: next, daemon)
    let cancelled = try #require(daemon.call(next)).deadline
    daemon.give(.clock, at: cancelled)
    var output = daemon.give(.clock, at: abandoned)
    next = output.starts.first
    while let call = next {
      called += 1
      output = daemon.give(.ended(call, .completed), at: abandoned)
      next = output.starts.first
    }
    let report = try #require(daemon.stop.exit).report
    #expect(called == 2 * count - 1)
    #expect(report.problems.count == 1 && report.entries.count == 2 * count)
  }

  /// However short the stop is: of 50 ms before the save.
  @Test func oneThatHangsLeavesTheOthersSome() throws {
    let daemon = DaemonUnderTest(
      LifecycleConfiguration(
        stopTimeout: .milliseconds(100), saveReserve: .milliseconds(50), exitGrace: .zero),
      observing: [DidEnterBackground.self])
    for _ in 1...2 { daemon.add([DidEnterBackground.self]) }
    var next = daemon.signal().starts.first
    for _ in 1...3 {
      let call = try #require(daemon.call(next))
      daemon.give(.clock, at: call.deadline)
      next = daemon.give(.clock, at: call.deadline.advanced(by: call.grace)).starts.first
    }
    let problems = try #require(daemon.stop.exit).report.problems
    #expect(problems.map(\.outcome) == Array(repeating: .abandoned(.running), count: 3))
  }

  /// Of 4 ms before the save the first has 2, and the next would have 1, which is not worth a call.
  @Test func whatIsSkippedAfterAHookWithoutAThreadHasItsOwnTime() throws {
    let daemon = DaemonUnderTest(
      LifecycleConfiguration(stopTimeout: .milliseconds(8), exitGrace: .zero),
      observing: [DidEnterBackground.self])
    for _ in 1...2 { daemon.add([DidEnterBackground.self]) }
    let signal = LifecycleEvent(.terminate)
    let call = try #require(daemon.call(daemon.give(.event(signal), begins: false).starts.first))
    daemon.give(.clock, at: call.deadline)
    let given = call.deadline.advanced(by: call.grace)
    let last = try #require(daemon.give(.clock, at: given).starts.first)
    daemon.give(.ended(last, .completed), at: given)
    let entries = try #require(daemon.stop.exit).report.entries
    #expect(
      entries.map(\.outcome) == [.skipped(.noThread), .skipped(.outOfTime), .completed])
    #expect(entries.map(\.began) == [at(0), given, given])
  }

  /// Whatever those before it take: what is kept for it, where that is not less than the least share, and its limit where the
  /// stop has room for all limits.
  @Test func eachHasItsPart() {
    for seed in 0..<2000 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      let count = random.below(8) + 1
      let calls = (0..<count).map { _ in
        Delivery.PlannedCall(
          observer: ObserverID(value: 1), hook: 0, isTogether: false,
          claim: random.chance(50) ? .seconds(random.below(30)) : .zero)
      }
      let whole = Duration.milliseconds(random.below(60_000) + 200 * count)
      let budget = StopBudget(until: at(0).advanced(by: whole), reserve: .zero)
      let hasRoom = calls.reduce(.seconds(count)) { $0 + $1.claim } <= whole
      let kept = min(.seconds(1), whole / count / 2)
      var (others, now) = (StopBudget.Needs(), at(0))
      others.add(calls[...])
      others.kept = budget.kept(for: count, of: .workEnds, at: now)
      for call in calls {
        others.remove(call.claim)
        let share = budget.share(of: .workEnds, at: now, claim: call.claim, beside: others)
        #expect(share >= kept - .microseconds(1), "seed \(seed)")
        if hasRoom { #expect(share >= call.claim, "seed \(seed)") }
        now = now.advanced(by: random.chance(70) ? share : share * random.below(100) / 100)
        #expect(now <= budget.end, "seed \(seed)")
      }
    }
  }

  // MARK: What a stop overtakes

  /// Of 24 s before the save 20 are the drain's, its grace included; of the others each has a half.
  @Test func aReloadUnderWayLeavesADrainItsLimit() throws {
    daemon.add([ShouldReload.self])
    daemon.add([DidEnterBackground.self], timeout: .seconds(19))
    let reload = daemon.request(.reload).starts.first
    daemon.signal()
    #expect(try end(of: reload) == at(2))
  }

  /// Three pauses, of which each leaves what it does not need: as in a stop that overtakes nothing.
  @Test(arguments: [false, true]) func aPauseUnderWayIsCountedOnce(isUnderWay: Bool) throws {
    for _ in 1...3 { daemon.add([DidEnterBackground.self]) }
    var next = isUnderWay ? daemon.request(.pause).starts.first : nil
    let first = daemon.signal().starts.first
    next = next ?? first
    var ends: [MonotonicTime] = []
    while let call = next {
      ends.append(try end(of: call))
      next = daemon.give(.ended(call, .completed)).starts.first
    }
    #expect(ends == [at(8), at(12), at(24)])
  }

  /// What is skipped takes no share: of three reloads only the one that runs, and the pauses.
  @Test func whatAStopSkipsIsNotCounted() throws {
    for _ in 1...3 { daemon.add([DidEnterBackground.self, ShouldReload.self]) }
    let reload = daemon.request(.reload).starts.first
    daemon.signal()
    #expect(try end(of: reload) == at(6))
  }

  @Test func aLaunchUnderWayIsCountedOnce() throws {
    let daemon = DaemonUnderTest(
      LifecycleConfiguration(
        hookTimeout: .seconds(60), stopTimeout: .seconds(30), saveReserve: .seconds(6),
        exitGrace: .zero), state: .launching)
    for _ in 1...3 { daemon.add([DidEnterBackground.self, WillEnterForeground.self]) }
    let launch = daemon.give(.launch { _ in }).starts.first
    daemon.signal()
    // The one that enters has a pause to come, the others will not have entered.
    #expect(try end(of: launch, daemon) == at(12))
  }

  /// Its own time is the rest of the suspend's; in a stop it leaves the saves their reserve.
  @Test func aSuspendUnderWayLeavesTheSavesTheirReserve() throws {
    daemon.add([WillSuspend.self])
    daemon.add([ShouldSaveState.self])
    daemon.request(.suspend)
    let save = try #require(daemon.machine.hooksUnderWay.first)
    let suspend = daemon.give(.ended(save, .completed)).starts.first
    #expect(daemon.call(suspend)?.step.kind == .willSuspend)
    daemon.signal()
    #expect(try end(of: suspend) == at(24))
  }

  // MARK: What the service manager allows

  /// Read as the stop begins; a hook that was cut by what was known has the new time, up to its own limit.
  @Test(arguments: [(5, 30), (30, 5)])
  func whatIsReadAsAStopBeginsCounts(known: Int, read: Int) throws {
    let daemon = DaemonUnderTest(
      LifecycleConfiguration(
        hookTimeout: .seconds(60), saveReserve: .seconds(6), exitGrace: .zero),
      observing: [DidEnterBackground.self])
    daemon.give(.stopTimeout(.seconds(known)))
    let pause = daemon.signal().starts.first
    daemon.give(.stopTimeout(.seconds(read)))
    // A second, or a tenth, less than is allowed: 29 s, or 4.5 s, of which half is the save's.
    let found = try self.end(of: pause, daemon)
    #expect(found == (read == 30 ? at(23) : MonotonicTime(nanoseconds: 2_250_000_000)))
  }

  /// Found by an attack: its end has moved, and so has its grace.
  @Test func aCallThatIsLengthenedEndsWithTheBudget() throws {
    let daemon = DaemonUnderTest(
      LifecycleConfiguration(
        hookTimeout: .seconds(60), saveReserve: .seconds(1), exitGrace: .seconds(1)),
      observing: [ShouldSaveState.self])
    daemon.give(.stopTimeout(.seconds(5)))
    let save = daemon.signal().starts.first
    daemon.give(.stopTimeout(.milliseconds(5200)), at: at(2))
    #expect(try end(of: save, daemon) == (try #require(daemon.stop.budget).end))
  }

  /// What is known already changes nothing.
  @Test func theSameTimeAgainTakesNoGraceAway() throws {
    daemon.add([DidEnterBackground.self])
    daemon.give(.stopTimeout(.seconds(60)))
    let pause = daemon.signal().starts.first
    daemon.signal(at: 2)
    let next = try #require(daemon.call(pause)).next
    daemon.give(.stopTimeout(.seconds(60)), at: at(2))
    #expect(daemon.call(pause)?.next == next && next > at(2))
  }

  @Test func moreTimeLengthensADrain() {
    let daemon = DaemonUnderTest(
      LifecycleConfiguration(
        hookTimeout: .seconds(2), saveReserve: .seconds(1), exitGrace: .zero,
        stopDelay: .seconds(10)))
    daemon.give(.stopTimeout(.seconds(5)))
    daemon.signal()
    #expect(daemon.stop.deadline < at(2))
    daemon.give(.stopTimeout(.seconds(30)))
    #expect(daemon.stop.deadline == at(10))
  }

  /// It would undo what the signal is for.
  @Test func afterASecondSignalNothingIsAdded() throws {
    daemon.add([ShouldSaveState.self])
    daemon.give(.stopTimeout(.seconds(10)))
    let save = daemon.signal().starts.first
    daemon.signal(at: 2)
    let before = try end(of: save)
    daemon.give(.stopTimeout(.seconds(30)), at: at(2))
    #expect(try end(of: save) == before)
  }

  // MARK: What is said meanwhile

  @Test func aPauseIsRevokedByAResume() {
    var isRevoked: Bool? {
      daemon.machine.transition.map { daemon.machine.progress(of: $0).isRevoked }
    }
    daemon.add([DidEnterBackground.self])
    daemon.request(.pause)
    #expect(isRevoked == false)
    daemon.request(.resume)
    #expect(isRevoked == true)
    // Not while there is another reason.
    daemon.request(.pause(for: BackgroundReason("db.service")))
    #expect(isRevoked == false)
  }

  /// Though it is less than a second after the last.
  @Test func theEndOfATransitionShowsTheDaemonsStatus() {
    func shown(_ output: DaemonUnderTest.Output) -> [String?] {
      output.facts.compactMap { if case .statusNote(.daemon, let text) = $0 { text } else { nil } }
    }
    #expect(shown(daemon.give(.status("a"))) == ["a"])
    #expect(shown(daemon.give(.status("b"))) == [])
    #expect(shown(daemon.request(.reload)) == ["b"])
  }
}
