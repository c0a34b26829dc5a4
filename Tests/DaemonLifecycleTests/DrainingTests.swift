// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import DaemonSystemd
import TestSupport
import Testing

@testable import DaemonLifecycle

/// `foreground(draining:)`: a server finishes what it has begun.
@Suite(.timeLimit(.minutes(5))) struct DrainingTests {
  private let log = Log()

  private static func configuration(
    stop: Duration = .seconds(90), service: Duration = .seconds(10)
  ) -> LifecycleConfiguration {
    LifecycleConfiguration(hookTimeout: service, stopTimeout: stop, logging: .off)
  }

  /// A server whose request in flight takes `busy`.
  private func serve(
    _ mock: MockLifecycleSubject, draining limit: Duration = .seconds(20), name: String = "server",
    phase: LifecyclePhase = .standard, busy: Duration
  ) -> Task<Void, Never> {
    mock.core.endSetUp()
    return Task {
      do {
        try await mock.foreground(name: name, phase: phase, draining: limit) { round in
          log.add("\(name) serves")
          try await round.waitUntilEnding()
          log.add("\(name) finishes")
          try await mock.clock.sleep(for: busy)
          log.add("\(name) has answered")
        }
        log.add("\(name) returned")
      } catch { log.add("\(name) threw \(type(of: error))") }
    }
  }

  private func untilServing(_ names: String...) async throws {
    try await eventually { names.allSatisfy { log.all.contains("\($0) serves") } }
    log.clear()
  }

  /// Also where its pause has not begun: it must take nothing more, behind a save that has been made.
  @Test func aSecondSignalCancelsThoseThatAreNotPausedYet() async throws {
    let mock = MockLifecycleSubject(configuration: Self.configuration())
    mock.addObserver(
      Scripted(save: { [log, clock = mock.clock] _ in
        log.add("save")
        try await clock.sleep(for: .seconds(1))
      }))
    let tasks = ["server", "jobs"].map { serve(mock, name: $0, busy: .seconds(1000)) }
    try await untilServing("server", "jobs")
    mock.inject(.sigterm)
    try await mock.waitUntilSleeping()
    #expect(log.all == ["jobs finishes"])
    await mock.advance(by: .seconds(2))
    mock.inject(.sigterm)
    // Not only as the daemon ends.
    try await eventually { log.all.contains("server finishes") && log.all.contains("save") }
    #expect(mock.exitResult == nil)
    await mock.advance(by: .seconds(1))
    try await mock.waitUntilSettled()
    for task in tasks { await task.value }
    #expect(!log.all.contains("server has answered"))
  }

  @Test func whatTakesLongerIsCutAndNamed() async throws {
    let mock = MockLifecycleSubject()
    let task = serve(mock, busy: .seconds(1000))
    try await untilServing("server")
    mock.inject(.sigterm)
    try await mock.waitUntilSleeping()
    #expect(log.all == ["server finishes"])
    await mock.advance(by: .milliseconds(19_999))
    #expect(mock.exitResult == nil)
    await mock.advance(by: .milliseconds(1))
    try await mock.waitUntilSettled()
    await task.value
    let entry = try #require(
      mock.exitResult?.report.entries.first { $0.notification == DidEnterBackground.self })
    #expect(entry.observer == "server")
    guard case .timedOut = entry.outcome else {
      Issue.record("\(entry)")
      return
    }
    #expect(mock.exitResult?.exitStatus == 124)
    #expect(log.all == ["server finishes", "server returned"])
  }

  @Test func aPauseDrainsAndAResumeIsANewRound() async throws {
    let mock = MockLifecycleSubject()
    let task = serve(mock, busy: .seconds(3))
    try await untilServing("server")
    mock.inject(.sigusr1)
    try await mock.waitUntilSleeping()
    #expect(log.all == ["server finishes"])
    // It waits: rounds never overlap.
    mock.inject(.sigusr2)
    await mock.advance(by: .seconds(2))
    #expect(log.all == ["server finishes"])
    await mock.advance(by: .seconds(1))
    let report = try await mock.waitUntilSettled()
    #expect(report.problems.isEmpty)
    try await eventually { log.all.contains("server serves") }
    #expect(log.all == ["server finishes", "server has answered", "server serves"])
    mock.inject(.sigterm)
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(3))
    try await mock.waitUntilSettled()
    await task.value
    #expect(mock.exitResult?.exitStatus == 0)
  }

  /// Cut to what the stop leaves: 20 s less 2 s for the exit, and a grace. Nobody saves.
  @Test func aStopDuringAPausesDrainGoesOnWithItWithinItsTime() async throws {
    let mock = MockLifecycleSubject(configuration: Self.configuration(stop: .seconds(20)))
    let task = serve(mock, draining: .seconds(60), busy: .seconds(1000))
    try await untilServing("server")
    mock.inject(.sigusr1)
    try await mock.waitUntilSleeping()
    #expect(log.all == ["server finishes"])
    await mock.advance(by: .seconds(30))
    #expect(log.all == ["server finishes"])
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(18))
    try await mock.waitUntilSettled()
    await task.value
    #expect(mock.exitResult != nil && log.all.last == "server returned")
    // It was the pause's to finish, so its report names who was cut off; and the stop's to wait for it.
    let paused = try #require(mock.exitResult?.overtakenPause)
    #expect(paused.cause.signal == .sigusr1 && paused.problems.map(\.observer) == ["server"])
    #expect(mock.exitResult?.exitStatus == 124)
  }

  @Test func serversOfAConcurrentPhaseEndTogether() async throws {
    let mock = MockLifecycleSubject()
    let phase = LifecyclePhase(order: 0, isConcurrent: true)
    let tasks = ["a", "b"].map { serve(mock, name: $0, phase: phase, busy: .seconds(15)) }
    try await untilServing("a", "b")
    mock.inject(.sigterm)
    try await mock.waitUntilSleeping(2)
    await mock.advance(by: .seconds(15))
    try await mock.waitUntilSettled()
    for task in tasks { await task.value }
    #expect(mock.exitResult?.exitStatus == 0)
    #expect(log.all.filter { $0.hasSuffix("has answered") }.count == 2)
  }

  // MARK: Limits

  @Test func aLimitThatDoesNotFitIsSaid() async throws {
    let observed = ObservedCore(Self.configuration(stop: .seconds(20)))
    func warnings() -> [String] { observed.log.names.filter { $0.hasPrefix("warning") } }
    for name in ["server", "quick"] {
      observed.core.add(
        Scripted(background: { _ in }),
        .init(name: name, timeout: name == "quick" ? .seconds(2) : .seconds(60)))
    }
    _ = await observed.core.launch()
    // Whichever thread leaves the core first has them logged.
    try await eventually { warnings().count == 1 }
    // Of 9 s before the save less the limit of the other, or a half, and a grace.
    #expect(
      try #require(warnings().first).contains(
        "server may take 60 s, but a stop leaves only 4 s for it."))
    // A newcomer says it of itself.
    observed.core.add(
      Scripted(background: { _ in }), .init(name: "late", timeout: .seconds(30)))
    try await eventually { warnings().last?.contains("late may take 30 s") == true }
    // Others like it are no news.
    for number in 1...1000 {
      observed.core.add(
        Scripted(background: { _ in }), .init(timeout: .seconds(number % 2 == 0 ? 40 : 50)))
    }
    #expect(warnings().count == 2)
    observed.core.add(Scripted(background: { _ in }), .init(timeout: .seconds(70)))
    try await eventually { warnings().count == 3 }
    // And once it is known that the service manager allows less.
    let later = ObservedCore(LifecycleConfiguration(logging: .off))
    later.core.add(Scripted(background: { _ in }), .init(name: "server", timeout: .seconds(60)))
    _ = await later.core.launch()
    #expect(!later.log.names.contains { $0.hasPrefix("warning") })
    later.core.take(.systemd(.stopTimeout(.seconds(30))))
    try await eventually { later.log.names.contains { $0.contains("server may take 60 s") } }
  }

  /// Ten others that need no time leave it what it has asked for; a stop of 30 s has 18 s before the save.
  @Test(arguments: [(0, 16), (1, 15), (10, 8)])
  func whatPausesAtOnceTakesNothingFromADrain(others: Int, seconds: Int) async throws {
    let mock = MockLifecycleSubject(
      configuration: Self.configuration(stop: .seconds(30)))
    for _ in 0..<others { mock.addObserver(Scripted(background: { _ in })) }
    let task = serve(mock, busy: .seconds(seconds))
    try await untilServing("server")
    mock.inject(.sigterm)
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(seconds))
    try await mock.waitUntilSettled()
    await task.value
    #expect(mock.exitResult?.exitStatus == 0)
    #expect(log.all.contains("server has answered"))
  }

  @Test func aPhasesDeadlineIsItsMembers() async throws {
    let mock = MockLifecycleSubject()
    let gate = Gate()
    let quick = LifecyclePhase(order: 1, timeout: .seconds(2))
    mock.addObserver(
      Scripted(background: gate.hold), name: "quick", phase: quick)
    mock.addObserver(
      Scripted(background: gate.hold), name: "own", phase: quick,
      timeout: .seconds(5))
    try await mock.waitUntilSettled()
    mock.inject(.sigusr1)
    await mock.advance(by: .seconds(5))
    #expect(mock.pendingNames.isEmpty == false)
    await mock.advance(by: .seconds(1 + 2 + 1))
    let report = try await mock.waitUntilSettled()
    gate.open()
    #expect(report.problems.map(\.observer) == ["own", "quick"])
    #expect(report.problems.map { Int($0.duration / .seconds(1)) } == [6, 3])
  }

  // MARK: Tasks

  /// Requests may need what runs beside them, a database client for one.
  @Test func whatRunsThroughoutOutlivesTheDrain() async throws {
    let observed = ObservedCore(LifecycleConfiguration(exitGrace: nil, logging: .off))
    let core = observed.core
    let gate = Gate()
    core.add(
      Scripted(background: { _ in
        log.add("drains")
        await gate.wait()
        log.add("drained")
      }))
    _ = await core.launch()
    core.addTask {
      do { try await LifecycleClock(keeper: core).sleep(for: .seconds(1000)) } catch {
        log.add("task cancelled")
        throw error
      }
    }
    core.receive(LifecycleEvent(.terminate))
    try await eventually { log.all == ["drains"] }
    gate.open()
    try await eventually { log.all.count == 3 }
    #expect(log.all == ["drains", "drained", "task cancelled"])
  }
}

extension MockLifecycleSubject {
  fileprivate var pendingNames: [String] {
    do { try checkNothingPending() } catch { return error.pending }
    return []
  }
}
