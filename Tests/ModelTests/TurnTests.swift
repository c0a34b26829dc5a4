// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import TestSupport
import Testing

@testable import DaemonLifecycle

/// In what order, and until when, a stop of 30 s waits for what has to end in it; 6 of them are for the saves.
@Suite struct TurnTests {
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

  @Test func aTaskWhoseDrainDoesNotFitIsWarnedOf() {
    let warnings = daemon.add(WorkOptions(form: .task, drains: true), timeout: .seconds(300))
      .warnings
    #expect(
      warnings.first?.hasPrefix("work may take 300 s, but") == true, "\(warnings)")
  }

  @Test func aSecondSignalLeavesASaveItsReserve() throws {
    daemon.add([ShouldSaveState.self])
    let save = daemon.signal().starts.first
    daemon.signal(at: 2)
    #expect(try end(of: save) == at(8))
  }

  /// Found by a reading: the moment for WillTerminate was that of the whole stop, and longer than the reserve.
  @Test func aSecondSignalLeavesAShortReserveToTheSave() throws {
    let daemon = DaemonUnderTest(
      LifecycleConfiguration(
        hookTimeout: .seconds(60), stopTimeout: .seconds(30), saveReserve: .milliseconds(500),
        exitGrace: .zero))
    daemon.add([DidEnterBackground.self])
    daemon.add([ShouldSaveState.self])
    daemon.add([WillTerminate.self])
    let pause = daemon.signal().starts.first
    daemon.signal(at: 2)
    let saves = daemon.give(.ended(try #require(pause), .completed), at: at(2)).starts
    #expect(daemon.kinds(saves) == [.shouldSaveState])
  }

  // MARK: What the service manager allows

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
      daemon.machine.registry.transition.map { daemon.machine.progress(of: $0).isRevoked }
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

  // MARK: Turns

  /// Gives the clock its next time; returns the calls that begin.
  @discardableResult private func tick(_ daemon: DaemonUnderTest? = nil) -> [CallID] {
    let daemon = daemon ?? self.daemon
    return daemon.give(.clock, at: daemon.machine.deadline).starts
  }

  /// Nobody else is to be called: all of the time is its own, and without savers there is no reserve.
  @Test(arguments: [(false, 30), (true, 24)] as [(Bool, Int64)])
  func oneAloneHasAllTheTime(saves: Bool, to: Int64) throws {
    daemon.add([DidEnterBackground.self])
    if saves { daemon.add([ShouldSaveState.self]) }
    #expect(try end(of: daemon.signal().starts.first) == at(to))
  }

  /// A second of 30 is the last notification's, where somebody has a hook for it.
  @Test func theLastHasAMoment() throws {
    daemon.add([DidEnterBackground.self], timeout: .seconds(50))
    daemon.add([ShouldSaveState.self, WillTerminate.self])
    let pause = try #require(daemon.signal().starts.first)
    #expect(try end(of: pause) == at(23))
    #expect(try end(of: daemon.give(.ended(pause, .completed)).starts.first) == at(29))
  }

  /// Its own limit is too long: it was to leave the save six seconds, and has them when that is gone.
  @Test func theLastSaverLeavesItsReserve() throws {
    let pause = [DidEnterBackground.self] as [any LifecycleNotification.Type]
    daemon.add(pause, timeout: .seconds(50))
    daemon.add([ShouldSaveState.self])
    let saver = try #require(daemon.machine.registry.members.all.last).id
    let call = daemon.signal().starts.first
    #expect(try end(of: call) == at(24))
    daemon.give(.remove([saver]))
    tick()
    #expect(daemon.call(call)?.isCancelled == false)
    #expect(try end(of: call) == at(30))
  }

  /// It was never launched, and has nothing to save.
  @Test func aSaverThatIsAddedDuringTheStopHasNoReserve() throws {
    daemon.add([DidEnterBackground.self])
    let pause = daemon.signal().starts.first
    daemon.add([ShouldSaveState.self])
    daemon.give(.stopTimeout(.seconds(29)))
    #expect(try end(of: pause) == at(28))
  }

  /// Half of logind's five seconds is for the saves, where somebody saves.
  @Test(arguments: [(false, 5000), (true, 2500)] as [(Bool, Int64)])
  func aSuspendKeepsNothingForNobody(saves: Bool, to: Int64) throws {
    daemon.add([DidEnterBackground.self])
    if saves { daemon.add([ShouldSaveState.self]) }
    daemon.give(.sleepDelay(.seconds(5)))
    let pause = daemon.request(.sleep).starts.first
    #expect(try end(of: pause) == MonotonicTime(nanoseconds: to * 1_000_000))
  }

  /// One that hangs has half of what is left; then the next is called beside it. All who are left are called a second
  /// before the end, together.
  @Test func whatHangsLeavesTheOthersAHalf() throws {
    for _ in 1...9 { daemon.add([ShouldSaveState.self]) }
    var starts = [(at(0), daemon.signal().starts.count)]
    while starts.reduce(0, { $0 + $1.1 }) < 9 {
      let time = daemon.machine.deadline
      starts.append((time, tick().count))
    }
    let times = starts.map { at(0).duration(to: $0.0) / .seconds(1) }
    #expect(starts.dropLast().allSatisfy { $0.1 == 1 })
    #expect(Array(times.prefix(4)) == [0, 14.5, 21.75, 25.375])
    #expect(times.last! <= 29 && times.last! > 28.8)
  }

  /// Where the others' limits fit after it, its turn is longer: of 29 s the other claims five.
  @Test func oneIsWaitedForAsLongAsTheOthersLimitsFit() throws {
    daemon.add([DidEnterBackground.self], timeout: .seconds(4))
    daemon.add([DidEnterBackground.self], timeout: .seconds(50))
    let drain = daemon.signal().starts.first
    #expect(daemon.machine.deadline == at(24))
    #expect(tick().count == 1)
    #expect(try end(of: drain) == at(30))
  }

  /// One that has had its turn is not waited for, and goes on.
  @Test func theNextAreCalledInTheirOrderBesideIt() throws {
    for _ in 1...4 { daemon.add([DidEnterBackground.self]) }
    let hangs = daemon.signal().starts.first
    var next = tick().first
    let began = daemon.machine.now
    for _ in 1...2 {
      #expect(try end(of: next) == at(30))
      next = daemon.give(.ended(try #require(next), .completed), at: began).starts.first
    }
    daemon.give(.ended(try #require(next), .completed), at: began)
    daemon.give(.ended(try #require(hangs), .completed), at: at(20))
    let entries = try #require(daemon.stop.exit).report.entries
    #expect(entries.count == 4 && entries.allSatisfy { $0.outcome.isCompleted })
  }

  /// A task is asked to end after half of the time, as the next pause would be; what hangs goes on beside it.
  @Test func whatHangsLeavesATaskAHalf() throws {
    daemon.add([DidEnterBackground.self])
    daemon.add([ShouldSaveState.self])
    daemon.add(WorkOptions(form: .task, drains: true), timeout: .seconds(100))
    let hangs = try #require(daemon.signal().starts.first)
    #expect(daemon.machine.deadline == MonotonicTime(nanoseconds: 11_500_000_000))
    tick()
    #expect(daemon.machine.works.all.first?.run.map { _ in true } == true)
    let work = try #require(daemon.machine.calls.deliveries.first?.running.last)
    #expect(daemon.call(work)?.step.name == "the end of work")
    #expect(try end(of: hangs) == at(24) && end(of: work) == at(24))
    // The save waits for both.
    #expect(daemon.work(.ended(run: 1, nil), at: at(15)).starts.isEmpty)
    let save = daemon.give(.ended(hangs, .completed), at: at(20)).starts.first
    #expect(daemon.call(save)?.step.isSave == true)
    daemon.give(.ended(try #require(save), .completed), at: at(20))
    let entries = try #require(daemon.stop.exit).report.entries
    #expect(entries.count == 3 && entries.allSatisfy { $0.outcome.isCompleted })
  }

  /// A migration that is done has no moment.
  @Test func aTaskThatHasEndedDoesNotCount() throws {
    daemon.add([DidEnterBackground.self])
    daemon.add(WorkOptions(form: .task, mayReturn: true))
    daemon.work(.ended(run: 1, nil))
    let pause = try #require(daemon.request(.terminate).starts.first)
    #expect(try end(of: pause) == at(30))
    daemon.give(.ended(pause, .completed))
    #expect(daemon.stop.exit?.report.entries.count == 1)
  }

  /// A server that drains for 10 s, beside a worker (5 s) and a task (2 s), in the order in which they were added: all but the
  /// server are idle.
  @Test(
    arguments: [
      (["server"], 9, 2), (["worker", "server"], 9, 2), (["server", "task"], 9, 2),
      (["worker", "server", "task"], 9, 2), (["worker", "server"], 28, 8),
      (["worker", "server", "task"], 28, 8), (["server"], 9, 5),
    ] as [([String], Int64, Int64)])
  func aRequestIsAnswered(parts: [String], stop: Int64, busy: Int64) throws {
    let daemon = DaemonUnderTest(
      LifecycleConfiguration(stopTimeout: .seconds(stop)), state: .launching)
    for part in parts {
      switch part {
      case "server": daemon.add(WorkOptions(drains: true), timeout: .seconds(10))
      case "worker": daemon.add([DidEnterBackground.self], timeout: .seconds(5))
      default: daemon.add(WorkOptions(form: .task, drains: true), timeout: .seconds(2))
      }
    }
    daemon.give(.launch { _ in })
    let server = try #require(parts.firstIndex(of: "server")) + 1
    var output = daemon.signal()
    while daemon.stop.exit == nil {
      let now = daemon.machine.now
      if let call = output.starts.first {
        output = daemon.give(.ended(call, .completed), at: now)
      } else if let work = output.works.first(where: { Int($0.work) != server }) {
        output = daemon.work(.ended(run: 1, nil), of: Int(work.work), at: now)
      } else if daemon.machine.deadline < at(busy) {
        output = daemon.give(.clock, at: daemon.machine.deadline)
      } else {
        output = daemon.work(.ended(run: 1, nil), of: server, at: at(busy))
      }
    }
    #expect(daemon.machine.now == at(busy) && daemon.stop.exit?.exitStatus == 0)
  }

  /// However many they are.
  @Test(arguments: [1, 100, 10_000]) func whileThereIsTimeNobodyIsSkipped(count: Int) throws {
    let daemon = DaemonUnderTest(
      LifecycleConfiguration(stopTimeout: .seconds(9)),
      observing: [DidEnterBackground.self, ShouldSaveState.self])
    for _ in 1..<count { daemon.add([DidEnterBackground.self, ShouldSaveState.self]) }
    var waiting = daemon.signal().starts
    waiting.removeFirst()
    var called = 0
    while daemon.stop.exit == nil {
      if waiting.isEmpty { waiting = tick(daemon) }
      for call in waiting.isEmpty ? [] : [waiting.removeFirst()] {
        called += 1
        waiting += daemon.give(.ended(call, .completed), at: daemon.machine.now).starts
      }
    }
    let report = try #require(daemon.stop.exit).report
    #expect(called == 2 * count - 1)
    #expect(report.problems.count == 1 && report.entries.count == 2 * count)
  }

  /// However many hang: 80 of which each would have a tenth of a second.
  @Test(arguments: [(20, 2500), (80, 9000), (80, 100)])
  func whatHangsCostsNoOtherItsSave(count: Int, time: Int) throws {
    let daemon = DaemonUnderTest(
      LifecycleConfiguration(stopTimeout: .milliseconds(time)), observing: [ShouldSaveState.self])
    for _ in 1..<count { daemon.add([ShouldSaveState.self]) }
    var called = daemon.signal().starts.count
    while daemon.stop.exit == nil { called += tick(daemon).count }
    #expect(called == count)
    #expect(daemon.stop.exit?.report.entries.count == count)
  }

  /// Whatever those before it do, from stops of 30 ms to ten minutes: it is called, in its order, with at least half of a
  /// moment left, and the stop ends in time.
  @Test func eachIsCalled() throws {
    let first = SeededGenerator.chosen &* 3000
    for seed in first..<first + 1000 {
      var random = SeededGenerator(seed: seed)
      let whole = Duration.milliseconds(
        random.chance(30) ? 30 + random.below(1000) : 1000 + random.below(600_000))
      let daemon = DaemonUnderTest(
        LifecycleConfiguration(
          hookTimeout: .seconds(1 + random.below(60)), stopTimeout: whole,
          saveReserve: .milliseconds(random.below(20_000)), exitGrace: .zero))
      var pauses: [UInt64] = []
      for number in 1...UInt64(random.below(30) + 1) {
        let step = random.below(3)
        let types: [any LifecycleNotification.Type] =
          [
            [DidEnterBackground.self], [ShouldSaveState.self],
            [DidEnterBackground.self, WillTerminate.self],
          ][step]
        daemon.add(
          types,
          timeout: random.chance(30) ? .milliseconds(1 + random.below(60_000)) : nil)
        if step != 1 { pauses.append(number) }
      }
      var (order, running) = ([UInt64](), daemon.signal().starts)
      let end = try #require(daemon.stop.budget).end
      while daemon.stop.exit == nil {
        for call in running {
          guard let found = daemon.call(call), found.step.isPause else { continue }
          if !order.contains(found.observer.value) { order.append(found.observer.value) }
        }
        let now = daemon.machine.now
        #expect(now <= end, "seed \(seed)")
        if let call = running.first, random.chance(40) {
          running.removeFirst()
          let next = min(
            now.advanced(by: whole * random.below(30) / 100), max(now, daemon.machine.deadline))
          if daemon.call(call) != nil {
            running += daemon.give(.ended(call, .completed), at: next).starts
          }
        } else {
          running += daemon.give(.clock, at: max(now, daemon.machine.deadline)).starts
        }
      }
      #expect(order == pauses.reversed(), "seed \(seed)")
      let skipped = try #require(daemon.stop.exit).report.entries.contains {
        if case .skipped = $0.outcome { $0.notification != WillTerminate.self } else { false }
      }
      let hasReserve = daemon.stop.budget?.endBeforeSaves != end
      #expect(!skipped || !hasReserve, "seed \(seed)")
    }
  }

  // MARK: What a stop overtakes

  /// After half of the time the others are paused beside it, and its observer when it has ended.
  @Test(arguments: [false, true]) func whatAStopFindsUnderWayHasItsTurn(ends: Bool) throws {
    for _ in 1...3 { daemon.add([DidEnterBackground.self, ShouldReload.self]) }
    daemon.add([ShouldSaveState.self])
    let save = daemon.request(.reload).starts.first
    let ended = daemon.give(.ended(try #require(save), .completed))
    let reload = try #require(ended.starts.first)
    daemon.signal()
    #expect(try end(of: reload) == at(24))
    var pauses = tick()
    #expect(daemon.machine.now == MonotonicTime(nanoseconds: 11_500_000_000))
    for _ in 1...2 {
      #expect(daemon.kinds(pauses) == [.didEnterBackground])
      let pause = try #require(pauses.first)
      #expect(daemon.call(pause)?.observer != daemon.call(reload)?.observer)
      pauses = daemon.give(.ended(pause, .completed), at: daemon.machine.now).starts
    }
    #expect(pauses.isEmpty)
    if ends {
      let last = daemon.give(.ended(reload, .completed), at: at(20)).starts.first
      #expect(daemon.call(last)?.step.isPause == true && daemon.call(last)?.observer.value == 1)
      return
    }
    while daemon.call(reload)?.isCancelled == false { tick() }
    #expect(daemon.machine.now == at(23))
    tick()
    #expect(daemon.machine.now == at(24) && daemon.call(reload)?.isAbandoned == true)
  }

  /// Of the overtaken reload's hooks one is the stop's now, the others were not called.
  @Test func whatIsOvertakenIsReportedOnce() throws {
    daemon.add([DidEnterBackground.self])
    for _ in 1...2 { daemon.add([ShouldReload.self]) }
    let reload = try #require(daemon.request(.reload).starts.first)
    daemon.signal()
    let output = daemon.give(.clock, at: daemon.machine.deadline)
    #expect(output.ended.first?.kind == .reload)
    let skipped = LifecycleReport.Outcome.skipped(.overtaken)
    #expect(output.ended.first?.report.entries.map(\.outcome) == [skipped, skipped])
    daemon.give(.ended(try #require(output.starts.first), .completed), at: at(23))
    daemon.give(.ended(reload, .failed(Failure(SimulatedFailure()))), at: at(23))
    let exit = try #require(daemon.stop.exit)
    #expect(
      exit.report.entries.count == 2 && exit.report.failures.count == 1 && exit.exitStatus == 70)
  }

  /// It has the time of the saves; the others are called beside it, and save once more when that begins.
  @Test func aSaveUnderWay() throws {
    for _ in 1...2 { daemon.add([ShouldSaveState.self]) }
    let save = try #require(daemon.request(.saveState).starts.first)
    daemon.request(.terminate)
    #expect(try end(of: save) == at(30))
    let other = try #require(tick().first)
    #expect(
      daemon.machine.now == MonotonicTime(nanoseconds: 11_500_000_000)
        && daemon.call(other)?.step.isSave == true)
    daemon.give(.ended(other, .completed), at: at(12))
    let next = tick()
    #expect(daemon.machine.now == at(24) && daemon.kinds(next) == [.shouldSaveState])
    #expect(daemon.call(next.first)?.observer.value == 1 && daemon.call(save)?.isCancelled == false)
  }

  /// Nobody is paused any more, and the stop's saves begin beside it.
  @Test func aSecondSignalLeavesASaveUnderWayTheReserve() throws {
    daemon.add([DidEnterBackground.self])
    for _ in 1...2 { daemon.add([ShouldSaveState.self]) }
    let save = daemon.request(.saveState).starts.first
    daemon.signal()
    let next = daemon.signal(at: 2).starts + tick()
    #expect(try end(of: save) == at(8))
    // One that was about to begin is dropped for the stop's.
    #expect(daemon.kinds(next) == [nil, .shouldSaveState])
    #expect(try end(of: next.last) == at(8))
  }

  /// Its own time is the rest of the suspend's; in a stop it leaves the saves their reserve.
  @Test func aSuspendUnderWayLeavesTheSavesTheirReserve() throws {
    daemon.add([WillSleep.self])
    daemon.add([ShouldSaveState.self])
    daemon.request(.sleep)
    let save = try #require(daemon.machine.hooksUnderWay.first)
    let suspend = daemon.give(.ended(save, .completed)).starts.first
    #expect(daemon.call(suspend)?.step.kind == .willSleep)
    daemon.signal()
    #expect(try end(of: suspend) == at(24))
  }

  /// Read as the stop begins; a hook that was cut by what was known has the new time, up to its own limit.
  @Test(arguments: [(5, 30), (30, 5)])
  func whatIsReadAsAStopBeginsCounts(known: Int, read: Int) throws {
    let daemon = DaemonUnderTest(
      LifecycleConfiguration(
        hookTimeout: .seconds(60), saveReserve: .seconds(6), exitGrace: .zero),
      observing: [DidEnterBackground.self])
    daemon.add([ShouldSaveState.self])
    daemon.give(.stopTimeout(.seconds(known)))
    let pause = daemon.signal().starts.first
    daemon.give(.stopTimeout(.seconds(read)))
    // A second, or a tenth, less than is allowed: 29 s, or 4.5 s, of which half is the save's.
    let found = try self.end(of: pause, daemon)
    #expect(found == (read == 30 ? at(23) : MonotonicTime(nanoseconds: 2_250_000_000)))
  }
}
