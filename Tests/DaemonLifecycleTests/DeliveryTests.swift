import DaemonLifecycleTesting
import Testing

@testable import DaemonLifecycle

/// Order, phases, deadlines, outcomes and reports, on the mock's clock.
@Suite struct DeliveryTests {
  let log = Log()

  private func outcomes(_ report: LifecycleReport) -> [String] {
    report.entries.map { entry in
      let what = entry.notification.map { "\($0)" } ?? "body"
      return "\(what) \(entry.outcome)"
    }
  }

  // MARK: Order

  @Test func upInTheOrderAddedDownInReverse() async throws {
    let mock = MockLifecycleSubject(state: .launching)
    let (a, b) = (Listener("a", log), Listener("b", log))
    mock.addObserver(a)
    mock.addObserver(b)
    await mock.launch()
    await mock.send(.sigusr1)
    #expect(
      log.all == [
        "a launch", "b launch", "a foreground", "b foreground", "b background", "a background",
        "b save",
        "a save",
      ])
  }

  @Test func phasesComeBeforeTheOrderAdded() async throws {
    let mock = MockLifecycleSubject(state: .launching)
    let (late, early) = (Listener("late", log), Listener("early", log))
    mock.addObserver(late, phase: LifecyclePhase(order: 1))
    mock.addObserver(early, phase: LifecyclePhase(order: -1))
    await mock.launch()
    await mock.send(.sigusr1)
    #expect(
      log.all == [
        "early launch", "late launch", "early foreground", "late foreground", "late background",
        "early background", "late save", "early save",
      ])
  }

  /// Each of the two waits for the other: one after another they would not end before their deadline.
  @Test func aConcurrentPhaseHearsTogether() async throws {
    let mock = MockLifecycleSubject()
    let phase = LifecyclePhase(order: 0, concurrent: true)
    let (first, second) = (Gate(), Gate())
    let a = Scripted(background: { _ in
      first.open()
      await second.wait()
    })
    let b = Scripted(background: { _ in
      second.open()
      await first.wait()
    })
    mock.addObserver(a, phase: phase)
    mock.addObserver(b, phase: phase)
    let report = await mock.send(.sigusr1)
    #expect(report.problems.isEmpty)
    #expect(report.entries.filter { $0.notification is DidEnterBackground.Type }.count == 2)
  }

  @Test func theWholeLife() async throws {
    let mock = MockLifecycleSubject(state: .launching)
    let a = Listener("a", log)
    mock.addObserver(a)
    await mock.launch()
    #expect(mock.state == .foreground)
    await mock.send(.sighup)
    await mock.send(.suspend)
    #expect(mock.state == .background)
    await mock.send(.resume)
    await mock.send(.pressure(.memory))
    await mock.send(.sigterm)
    #expect(mock.state == .terminated)
    #expect(
      log.all.map { $0.dropFirst(2) } == [
        "launch", "foreground", "save", "reload", "background", "save", "suspend", "resume",
        "foreground",
        "pressure memory", "background", "save", "terminate",
      ])
    #expect(mock.exit?.code == 0)
    try mock.checkNothingPending()
  }

  @Test func anOperatorsPauseOutlastsASuspend() async throws {
    let mock = MockLifecycleSubject()
    let a = Listener("a", log)
    mock.addObserver(a)
    await mock.send(.sigusr1)
    await mock.send(.suspend)
    await mock.send(.resume)
    #expect(mock.state == .background)
    await mock.send(.sigusr2)
    #expect(mock.state == .foreground)
    #expect(
      log.all.map { $0.dropFirst(2) } == [
        "launch", "foreground", "background", "save", "save", "suspend", "resume", "foreground",
      ])
  }

  @Test func aPauseThatIsTakenBackInTimeIsNotDelivered() async throws {
    let mock = MockLifecycleSubject()
    let a = Listener("a", log)
    mock.addObserver(a)
    await mock.settled()
    log.clear()
    let hold = mock.holdDeliveries()
    mock.inject(.sigusr1)
    mock.inject(.sigusr2)
    mock.inject(.sighup)
    hold.cancel()
    await mock.settled()
    #expect(log.all == ["a save", "a reload"])
  }

  // MARK: Holding

  @Test func whatIsHeldIsDeliveredInOrder() async throws {
    let mock = MockLifecycleSubject()
    let a = Listener("a", log)
    mock.addObserver(a)
    await mock.settled()
    log.clear()
    let (outer, inner) = (mock.holdDeliveries(), mock.holdDeliveries())
    mock.inject(.sighup)
    mock.inject(.sigusr1)
    outer.cancel()
    outer.cancel()  // idempotent: the other hold stands
    #expect(throws: MockLifecycleSubject.PendingError.self) { try mock.checkNothingPending() }
    #expect(log.all.isEmpty)
    inner.cancel()
    await mock.settled()
    #expect(log.all == ["a save", "a reload", "a background", "a save"])
  }

  @Test func aTerminationIsNotHeld() async throws {
    let mock = MockLifecycleSubject()
    let a = Listener("a", log)
    mock.addObserver(a)
    await mock.settled()
    let hold = mock.holdDeliveries()
    await mock.send(.sigterm)
    #expect(mock.state == .terminated)
    hold.cancel()
  }

  // MARK: Observers that come and go

  @Test func aLateObserverIsWalkedUp() async throws {
    let mock = MockLifecycleSubject()
    let a = Listener("a", log)
    mock.addObserver(a)
    let report = await mock.settled()
    #expect(log.all == ["a launch", "a foreground"])
    #expect(report.entries.count == 2)
  }

  @Test func addingTwiceDoesNothing() async throws {
    let mock = MockLifecycleSubject()
    let a = Listener("a", log)
    mock.addObserver(a)
    mock.addObserver(a)
    await mock.send(.saveState)
    #expect(log.all == ["a launch", "a foreground", "a save"])
  }

  @Test func anObserverThatIsGoneIsSkippedOnce() async throws {
    let mock = MockLifecycleSubject()
    func addAndForget() { mock.addObserver(Listener("gone", log)) }
    // Else its first hook may be called before it is gone.
    let hold = mock.holdDeliveries()
    addAndForget()
    hold.cancel()
    let stays = Listener("stays", log)
    mock.addObserver(stays)
    let first = await mock.settled()
    #expect(
      outcomes(first).filter { $0.contains("gone") } == [
        "DidFinishLaunching skipped(DaemonLifecycle.LifecycleReport.Outcome.Reason.gone)"
      ])
    let second = await mock.send(.sigterm)
    #expect(second.problems.isEmpty)
    #expect(mock.exit?.code == 0)
    #expect(!log.all.contains { $0.hasPrefix("gone") })
  }

  @Test func removingSendsNothingAndDropsEverything() async throws {
    let mock = MockLifecycleSubject()
    let a = Listener("a", log)
    mock.addObserver(a)
    mock.observe(ShouldSaveState.self, owner: a) { owner, _ in owner.log.add("closure") }
    await mock.settled()
    log.clear()
    mock.removeObserver(a)
    await mock.send(.sigusr1)
    #expect(log.all.isEmpty)
  }

  @Test func observersAddedAndRemovedInAHook() async throws {
    let mock = MockLifecycleSubject()
    let (victim, late) = (Listener("victim", log), Listener("late", log))
    let log = log
    mock.addObserver(victim)
    let meddler = Scripted(background: { [unowned mock, late, victim] _ in
      log.add("meddler")
      mock.removeObserver(victim)
      mock.addObserver(late)
      log.add("\(mock.state)")
    })
    mock.addObserver(meddler)
    await mock.settled()
    log.clear()
    await mock.send(.sigusr1)
    // Down comes the meddler first; its victim hears nothing more, and the late one is launched between the
    // background and the save.
    #expect(log.all == ["meddler", "background", "late launch", "late save"])
  }

  @Test func aTokenDroppedDuringTheDelivery() async throws {
    let mock = MockLifecycleSubject()
    let log = log
    var tokens: [ObservationToken] = []
    tokens.append(mock.observe(ShouldSaveState.self) { _ in log.add("never") })
    let dropped = tokens[0]
    tokens.append(
      mock.observe(ShouldSaveState.self) { [weak dropped] _ in
        log.add("drops")
        dropped?.cancel()
      })
    let report = await mock.send(.saveState)
    #expect(log.all == ["drops"])
    #expect(report.entries.count == 1)
    withExtendedLifetime((tokens, dropped)) {}
  }

  @Test func aClosureEndsWithItsToken() async throws {
    let mock = MockLifecycleSubject()
    let log = log
    func observe() async {
      let token = mock.observe(ShouldSaveState.self) { _ in log.add("heard") }
      await mock.send(.saveState)
      withExtendedLifetime(token) {}
    }
    await observe()
    await mock.send(.saveState)
    #expect(log.all == ["heard"])
  }

  @Test func aClosureEndsWithItsOwner() async throws {
    let mock = MockLifecycleSubject()
    let log = log
    func own() async {
      let owner = Listener("owner", log)
      mock.observe(ShouldSaveState.self, owner: owner) { owner, _ in
        owner.log.add("heard by \(owner.name)")
      }
      await mock.send(.saveState)
      withExtendedLifetime(owner) {}
    }
    await own()
    let report = await mock.send(.saveState)
    #expect(log.all == ["heard by owner"])
    #expect(report.problems.count == 1)
  }

  @MainActor private final class Window {
    var reloads = 0
    func reload() { reloads += 1 }
  }

  @Test func aSynchronousClosureOnTheMainActor() async throws {
    let mock = MockLifecycleSubject()
    let window = Window()
    let tokens = [
      mock.observe(ShouldReload.self) { @MainActor _ in window.reload() },
      mock.observe(ShouldReload.self) { @MainActor _ in throw CancellationError() },
    ]
    mock.observe(ShouldReload.self, owner: window) { @MainActor window, _ in window.reload() }
    let report = await mock.send(.sighup)
    #expect(await window.reloads == 2)
    #expect(report.problems.count == 1)
    withExtendedLifetime(tokens) {}
  }

  @Test func aHookThatTerminates() async throws {
    let mock = MockLifecycleSubject()
    let other = Listener("other", log)
    let quitter = Scripted(save: { [unowned mock] _ in mock.terminate() })
    mock.addObserver(other)
    mock.addObserver(quitter)
    await mock.settled()
    log.clear()
    await mock.send(.sighup)
    #expect(log.all == ["other save", "other background", "other save", "other terminate"])
    #expect(mock.state == .terminated)
    #expect(mock.exit?.code == 0)
  }

  @Test func removedWhileItsHookRuns() async throws {
    let mock = MockLifecycleSubject()
    let (began, ends) = (Gate(), Gate())
    let log = log
    let slow = Scripted(
      background: { _ in
        began.open()
        await ends.wait()
        log.add("ended")
      }, save: { _ in log.add("saved") })
    mock.addObserver(slow)
    await mock.settled()
    mock.inject(.sigusr1)
    await began.wait()
    mock.removeObserver(slow)
    ends.open()
    let report = await mock.settled()
    #expect(log.all == ["ended"])
    #expect(report.entries.last?.outcome.isCompleted == true)
  }

  // MARK: Posts and wildcards

  struct CacheInvalidated: LifecycleNotification, Equatable { let region: String }

  @Test func notificationsOfOnesOwn() async throws {
    let mock = MockLifecycleSubject()
    let log = log
    let token = mock.observe(CacheInvalidated.self) { notification in
      log.add(
        "\(notification.region) \(LifecycleContext.current?.cause.description ?? "no context")")
    }
    let report = await mock.post(CacheInvalidated(region: "eu"))
    #expect(log.all == ["eu a call"])
    #expect(report.entries.count == 1)
    withExtendedLifetime(token) {}
  }

  @Test func aPostInAHookIsDeliveredAtOnce() async throws {
    let mock = MockLifecycleSubject()
    let log = log
    let token = mock.observe(CacheInvalidated.self) { _ in log.add("post heard") }
    let poster = Scripted(background: { [unowned mock] _ in
      log.add("before")
      let report = await mock.post(CacheInvalidated(region: "eu"))
      log.add("after \(report.entries.count)")
    })
    mock.addObserver(poster)
    let report = await mock.send(.sigusr1)
    #expect(log.all == ["before", "post heard", "after 1"])
    #expect(report.problems.isEmpty)
    withExtendedLifetime(token) {}
  }

  @Test func aPostAfterTheEndSaysSo() async throws {
    let mock = MockLifecycleSubject()
    let token = mock.observe(CacheInvalidated.self) { _ in }
    await mock.send(.sigterm)
    let report = await mock.post(CacheInvalidated(region: "eu"))
    #expect(report.problems.count == 1)
    withExtendedLifetime(token) {}
  }

  @Test func aWildcardHearsEverythingAfterTheHook() async throws {
    final class Everything: StateObserver, WildcardObserver {
      let log: Log
      init(_ log: Log) { self.log = log }
      func shouldSaveState(_ notification: ShouldSaveState) { log.add("hook") }
      func didReceive(_ notification: any LifecycleNotification) {
        log.add("\(type(of: notification))")
      }
    }
    let mock = MockLifecycleSubject()
    let everything = Everything(log)
    let log = log
    let token = mock.observeAll { notification in log.add("closure \(type(of: notification))") }
    mock.addObserver(everything)
    await mock.settled()
    log.clear()
    await mock.send(.saveState)
    await mock.post(CacheInvalidated(region: "eu"))
    #expect(
      log.all == [
        "hook", "ShouldSaveState", "closure ShouldSaveState", "closure CacheInvalidated",
        "CacheInvalidated",
      ])
    withExtendedLifetime(token) {}
  }

  @Test func streamsAreViewsThatFinish() async throws {
    let mock = MockLifecycleSubject()
    let saves = mock.notifications(of: ShouldSaveState.self, bufferingNewest: 2)
    let all = mock.allNotifications()
    let reports = mock.reports()
    for _ in 0..<3 { await mock.send(.saveState) }
    await mock.send(.sigterm)
    var (saved, heard, reported) = (0, [String](), 0)
    for await _ in saves { saved += 1 }
    for await notification in all { heard.append("\(type(of: notification))") }
    for await _ in reports { reported += 1 }
    #expect(saved == 2)
    #expect(
      heard == [
        "ShouldSaveState", "ShouldSaveState", "ShouldSaveState", "ShouldSaveState", "WillTerminate",
      ])
    #expect(reported == 4)
    for await _ in mock.notifications(of: ShouldSaveState.self) {
      Issue.record("a stream after the end")
    }
  }

  // MARK: Outcomes

  @Test func aThrowingHookStopsNoOther() async throws {
    let mock = MockLifecycleSubject()
    let other = Listener("other", log)
    let thrower = Scripted(background: { _ in throw Failure() })
    mock.addObserver(other)
    mock.addObserver(thrower)
    let report = await mock.send(.sigterm)
    #expect(log.all.suffix(3) == ["other background", "other save", "other terminate"])
    #expect(report.problems.map(\.observer) == ["Scripted"])
    #expect(mock.exit?.code == 70)
  }

  @Test func aHookIsCancelledAtItsDeadline() async throws {
    let mock = MockLifecycleSubject()
    let slow = Scripted(background: { [unowned mock] _ in
      try await mock.clock.sleep(for: .seconds(60))
    })
    mock.addObserver(slow)
    await mock.settled()
    mock.inject(.sigusr1)
    await mock.untilSleeping()
    await mock.advance(by: .seconds(10))
    let report = await mock.settled()
    let entry = try #require(report.entries.first { $0.notification is DidEnterBackground.Type })
    guard case .timedOut = entry.outcome else { throw Failure() }
    #expect(entry.duration == .seconds(10))
  }

  @Test func aHookThatDoesNotEndIsAbandoned() async throws {
    let mock = MockLifecycleSubject()
    let gate = Gate()
    let log = log
    let stuck = Scripted(
      background: { notification in
        await gate.wait()
        log.add("current: \(notification.context.isCurrent)")
      }, save: { _ in log.add("stuck saves") })
    let other = Listener("other", log)
    mock.addObserver(other)
    mock.addObserver(stuck)
    await mock.settled()
    log.clear()
    mock.inject(.sigusr1)
    await mock.advance(by: .seconds(10))
    #expect(log.all.isEmpty)
    // The main actor has answered, or nobody could say that the hook does not wait for it.
    await MainActor.run {}
    await mock.advance(by: .seconds(1))
    await mock.settled()
    // It is asked to save all the same, once.
    #expect(log.all == ["other background", "stuck saves", "other save"])
    let report = await mock.settled()
    #expect(
      report.problems.map(\.description) == [
        "Scripted, DidEnterBackground: abandoned after 11.0 s (running)"
      ])
    #expect(throws: MockLifecycleSubject.PendingError.self) { try mock.checkNothingPending() }

    // Its other hooks are skipped while it is busy, and it hears what it missed when it is free.
    let resumed = await mock.send(.sigusr2)
    #expect(
      resumed.problems.map(\.description) == ["Scripted, WillEnterForeground: skipped (busy)"])
    let reports = mock.reports()
    gate.open()
    for await report in reports where report.entries.contains(where: \.outcome.isCompleted) {
      break
    }
    #expect(log.all.contains("current: false"))
    try mock.checkNothingPending()
  }

  @Test func aDeadlineCanBeExtended() async throws {
    let mock = MockLifecycleSubject()
    let slow = Scripted(background: { [unowned mock] notification in
      notification.context.extendDeadline(by: .seconds(20))
      try await mock.clock.sleep(for: .seconds(25))
    })
    mock.addObserver(slow)
    await mock.settled()
    mock.inject(.sigusr1)
    await mock.untilSleeping()
    await mock.advance(by: .seconds(25))
    let report = await mock.settled()
    #expect(report.problems.isEmpty)
  }

  @Test func anActorThatIsBusyNeverBeginsAHookThatWasGivenUp() async throws {
    let mock = MockLifecycleSubject()
    let busy = BusyActor(log)
    mock.addObserver(busy)
    await mock.settled()
    let report = Log()
    // On a thread of its own: the pool's are few, and other tests need them.
    let thread = HookExecutor()
    let occupation = Task(executorPreference: thread) { await busy.occupy { !report.all.isEmpty } }
    await busy.isIn.wait()
    mock.inject(.sigusr1)
    await mock.advance(by: .seconds(11))
    let problems = await mock.settled().problems.map(\.description)
    report.add("done")
    await occupation.value
    thread.close()
    #expect(
      problems == ["BusyActor, DidEnterBackground: abandoned after 11.0 s (waitingForExecutor)"])
    // What was enqueued on the actor before this is through when this runs.
    await busy.run {}
    #expect(log.all.isEmpty)
  }

  // MARK: Termination's time

  private func configuration(budget: Duration, reserve: Duration) -> LifecycleConfiguration {
    LifecycleConfiguration(
      hookDeadline: .seconds(30), stopBudget: budget, saveReserve: reserve, exitGrace: nil,
      logsProblems: false)
  }

  @Test func theSaveReserveIsKept() async throws {
    let mock = MockLifecycleSubject(
      configuration: configuration(budget: .seconds(20), reserve: .seconds(8)))
    let gate = Gate()
    let stuck = (0..<3).map { _ in Scripted(background: { _ in await gate.wait() }) }
    let saver = Listener("saver", log)
    mock.addObserver(saver)
    for observer in stuck { mock.addObserver(observer) }
    await mock.settled()
    log.clear()
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(12))
    let report = await mock.settled()
    #expect(log.all.contains("saver save"))
    #expect(outcomes(report).filter { $0.contains("outOfTime") }.count == 3, "\(report)")
    #expect(mock.exit?.code == 124)
    gate.open()
  }

  @Test func aStuckSaverDoesNotTakeTheOthersChance() async throws {
    let mock = MockLifecycleSubject(
      configuration: configuration(budget: .seconds(10), reserve: .seconds(5)))
    let gate = Gate()
    let saver = Listener("saver", log)
    let stuck = Scripted(save: { _ in await gate.wait() })
    mock.addObserver(saver)
    mock.addObserver(stuck)
    await mock.settled()
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(9))
    await mock.settled()
    #expect(log.all.contains("saver save"))
    #expect(mock.state == .terminated)
    gate.open()
  }

  @Test func aSecondSignalLeavesTheSaveReserveOnly() async throws {
    let mock = MockLifecycleSubject()
    let gate = Gate()
    let first = Listener("first", log)
    let stuck = Scripted(background: { _ in await gate.wait() })
    mock.addObserver(first)
    mock.addObserver(stuck)
    await mock.settled()
    log.clear()
    mock.inject(.sigterm)
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(1))
    let report = await mock.settled()
    #expect(log.all == ["first save", "first terminate"])
    #expect(
      outcomes(report).contains {
        $0.contains("DidEnterBackground skipped") && $0.contains("outOfTime")
      })
    #expect(mock.exit?.code == 124)
    gate.open()
  }

  @Test func aThirdSignalExitsAtOnce() async throws {
    let mock = MockLifecycleSubject()
    let gate = Gate()
    let stuck = Scripted(background: { _ in await gate.wait() })
    mock.addObserver(stuck)
    await mock.settled()
    mock.inject(.sigterm)
    mock.inject(.sigint)
    #expect(mock.immediateExitCode == nil)
    mock.inject(.sigint)
    #expect(mock.immediateExitCode == 130)
    #expect(mock.exit?.code == 130)
    #expect(mock.state == .terminated)
    gate.open()
  }

  @Test func callsDoNotEscalate() async throws {
    let mock = MockLifecycleSubject()
    let saver = Listener("saver", log)
    mock.addObserver(saver)
    await mock.settled()
    log.clear()
    for _ in 0..<5 { mock.terminate() }
    await mock.send(.sigterm)  // the first signal
    #expect(log.all == ["saver background", "saver save", "saver terminate"])
    #expect(mock.exit?.code == 0)
  }

  @Test func aTerminationOvertakesAReload() async throws {
    let mock = MockLifecycleSubject()
    let (began, ends) = (Gate(), Gate())
    let log = log
    let never = mock.observe(ShouldReload.self, phase: LifecyclePhase(order: 1)) { _ in
      log.add("never")
    }
    let slow = mock.observe(ShouldReload.self) { _ in
      began.open()
      await ends.wait()
    }
    mock.inject(.sighup)
    await began.wait()
    mock.inject(.sigterm)
    ends.open()
    let report = await mock.settled()
    #expect(log.all.isEmpty)
    #expect(outcomes(report).filter { $0.contains("overtaken") }.count == 1)
    #expect(mock.exit?.code == 0)
    #expect(mock.exit?.report.problems.isEmpty == true)
    withExtendedLifetime((never, slow)) {}
  }
}
