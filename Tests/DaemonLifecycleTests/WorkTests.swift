// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// A daemon that says that it works, works.
@Suite(.timeLimit(.minutes(5))) struct WorkTests {
  private let log = Log()

  // MARK: Work that ends by itself

  /// The stream ends with the first pause; its consumer returns at once in the next round.
  @Test(arguments: [false, true]) func itIsSaid(waitsUntilReady: Bool) async throws {
    let manager = try FakeServiceManager()
    let mock = MockLifecycleSubject(serviceManager: manager)
    let (stream, continuation) = AsyncStream<Int>.makeStream()
    mock.addForeground(name: "consumer", readyWithin: waitsUntilReady ? .seconds(5) : nil) {
      [log] round in
      round.reportReady()
      for await number in stream { log.add("\(number)") }
    }
    continuation.yield(1)
    try await mock.waitUntilInForeground()
    try await eventually { log.all == ["1"] }
    try await mock.send(.pause).check()
    try await mock.send(.resume).check()
    try await eventually { manager.service.statusText.contains("consumer has ended by itself") }
    #expect(mock.isReady == !waitsUntilReady)
    #expect(manager.service.statusText.contains("without consumer") == waitsUntilReady)
    try await mock.send(.pause).check()
    try await eventually { !manager.service.statusText.contains("consumer") }
    try await mock.send(.terminate).check()
    #expect(manager.violations == [])
  }

  @Test func whatIsDoneOnceIsNot() async throws {
    let manager = try FakeServiceManager()
    let mock = MockLifecycleSubject(serviceManager: manager)
    mock.addForeground(name: "import", mayReturn: true) { [log] in log.add("done") }
    try await mock.waitUntilInForeground()
    try await eventually { log.all == ["done"] }
    try await mock.send(.saveState).check()
    #expect(mock.isReady && !manager.service.statusText.contains("import"))
  }

  /// What was handed over is done in the drain, and what comes later is not taken.
  @Test func whatIsBufferedIsDone() async throws {
    let mock = MockLifecycleSubject()
    let (stream, continuation) = AsyncStream<Int>.makeStream()
    mock.addForeground(name: "consumer", draining: .seconds(30)) { [log] round in
      for try await number in stream.untilEnding(of: round) {
        try await mock.clock.sleep(for: .seconds(1))
        log.add("\(number)")
      }
    }
    for number in 1...5 { continuation.yield(number) }
    try await mock.waitUntilInForeground()
    try await mock.waitUntilSleeping()
    mock.inject(.terminate)
    for number in 1...5 {
      try await mock.waitUntilSleeping()
      if number > 1 { continuation.yield(9) }
      await mock.advance(by: .seconds(1))
    }
    try await eventually { mock.exitResult != nil }
    #expect(log.all == ["1", "2", "3", "4", "5"] && mock.exitResult?.exitStatus == 0)
  }

  /// Its time is over, and it throws out of its loop: the rest is the stream's, for the save or the next round.
  @Test(arguments: [nil, 2] as [Int?], [false, true])
  func whatAStopLeavesBehindIsStillTheStreams(draining limit: Int?, isPaused: Bool) async throws {
    let mock = MockLifecycleSubject()
    let (stream, continuation) = AsyncThrowingStream<Int, any Error>.makeStream()
    for number in 1...6 { continuation.yield(number) }
    mock.addForeground(name: "consumer", draining: limit.map { .seconds($0) }) { [log] round in
      for try await number in stream.untilEnding(of: round) {
        log.add("\(number)")
        try await mock.clock.sleep(for: .seconds(1.5))
      }
    }
    mock.on(ShouldSaveState.self) { [log] _ in
      guard mock.core.isTerminating else { return }
      continuation.finish()
      for try await number in stream { log.add("\(number) kept") }
    }
    try await mock.waitUntilInForeground()
    func end(by request: LifecycleRequest) async throws {
      try await mock.waitUntilSleeping()
      mock.inject(request)
      guard limit != nil else { return }
      await mock.advance(by: .seconds(1.5))
      try await mock.waitUntilSleeping()
      await mock.advance(by: .seconds(0.5))
    }
    if isPaused {
      try await end(by: .pause)
      try await mock.send(.resume).check()
    }
    try await end(by: .terminate)
    try await eventually { mock.exitResult != nil }
    let taken = (limit == nil ? 1 : 2) * (isPaused ? 2 : 1)
    #expect(log.all == (1...6).map { $0 <= taken ? "\($0)" : "\($0) kept" })
  }

  // MARK: Readiness

  @Test func readinessFollowsTheWork() async throws {
    let manager = try FakeServiceManager()
    let mock = MockLifecycleSubject(serviceManager: manager)
    let runs = Mutex(0)
    mock.addForeground(
      name: "server", restarting: .backoff(initialDelay: .seconds(10)), readyWithin: .seconds(5)
    ) { round in
      let run = runs.withLock { runs in
        runs += 1
        return runs
      }
      round.reportReady()
      try await mock.clock.sleep(for: .seconds(run == 1 ? 3 : 1000))
      throw Failure()
    }
    try await mock.waitUntilInForeground()
    try await mock.waitUntilSleeping()
    #expect(mock.isReady)
    await mock.advance(by: .seconds(3))
    try await eventually { !mock.isReady }
    try await eventually { manager.service.statusText.contains("foreground without server") }
    #expect(manager.service.statusText.contains("server has failed once: Failure()"))
    await mock.advance(by: .seconds(10))
    try await eventually { mock.isReady }
    try await eventually { !manager.service.statusText.contains("without") }
    try await mock.send(.terminate).check()
    #expect(manager.violations == [])
  }

  /// Nobody waits for a server that has gone.
  @Test(arguments: [false, true]) func whatEndsBeforeItIsReadyHasFailedItsLaunch(mayReturn: Bool)
    async throws
  {
    let mock = MockLifecycleSubject(state: .launching)
    mock.addForeground(name: "server", readyWithin: .seconds(5), mayReturn: mayReturn) { _ in }
    let launch = try await mock.launch()
    #expect(launch.problems.map(\.why) == (mayReturn ? [] : [": ended before it was ready"]))
    try await mock.waitUntilSettled()
    #expect(mock.exitResult?.exitStatus == (mayReturn ? nil : 70) && mock.isReady == mayReturn)
  }

  /// Its start has another limit than its drain.
  @Test func aStartHasALimitOfItsOwn() async throws {
    let mock = MockLifecycleSubject(state: .launching)
    mock.addForeground(name: "server", draining: .seconds(2), readyWithin: .seconds(60)) { round in
      try await mock.clock.sleep(for: .seconds(40))
      round.reportReady()
      try await round.waitUntilEnding()
    }
    let launch = Task { try await mock.launch() }
    try await mock.waitUntilSleeping()
    #expect(!mock.isReady)
    await mock.advance(by: .seconds(40))
    try await launch.value.check()
    #expect(mock.isReady)
    try await mock.send(.terminate).check()
  }

  // MARK: Progress

  @Test func aStallIsSaidOnceAndPassesWithProgress() async throws {
    let manager = try FakeServiceManager()
    let mock = MockLifecycleSubject(serviceManager: manager)
    let (stream, continuation) = AsyncStream<Int>.makeStream()
    mock.addForeground(name: "consumer", draining: .seconds(5), stallsAfter: .seconds(60)) {
      [log] round in
      for try await number in stream.untilEnding(of: round) { log.add("\(number)") }
    }
    continuation.yield(1)
    try await mock.waitUntilInForeground()
    try await eventually { log.all == ["1"] }
    await mock.advance(by: .seconds(50))
    continuation.yield(2)
    try await eventually { log.all == ["1", "2"] }
    await mock.advance(by: .seconds(50))
    #expect(!manager.service.statusText.contains("progress"))
    await mock.advance(by: .seconds(10))
    try await eventually {
      manager.service.statusText.contains("consumer has made no progress for 60 s")
    }
    continuation.yield(3)
    try await eventually { log.all == ["1", "2", "3"] }
    await mock.advance(by: .seconds(1))
    try await eventually { !manager.service.statusText.contains("progress") }
    // A pause stops the clock.
    try await mock.send(.pause).check()
    await mock.advance(by: .seconds(600))
    #expect(!manager.service.statusText.contains("progress"))
    try await mock.send(.terminate).check()
  }

  /// An empty queue is well, and a job that hangs is not; nor is an hour until the next tick a stall, but a poll that
  /// hangs.
  @Test(arguments: [false, true]) func anIdleTimeIsNoStallOfWorkThatMayIdle(polls: Bool)
    async throws
  {
    let mock = MockLifecycleSubject()
    let (jobs, continuation) = AsyncStream<Int>.makeStream()
    mock.addForeground(stallsAfter: .seconds(60), mayIdle: true) { round in
      if polls {
        for try await tick in mock.ticks(every: .seconds(3600)) where tick > 0 {
          try await mock.clock.sleep(for: .seconds(1000))
        }
      } else {
        for try await _ in jobs.untilEnding(of: round) {
          try await mock.clock.sleep(for: .seconds(1000))
        }
      }
    }
    try await mock.waitUntilInForeground()
    if polls { try await mock.waitUntilSleeping() }
    await mock.advance(by: .seconds(3599))
    #expect(mock.isHealthy)
    if polls { await mock.advance(by: .seconds(1)) } else { continuation.yield(1) }
    try await mock.waitUntilSleeping()
    #expect(mock.isHealthy)
    await mock.advance(by: .seconds(120))
    #expect(!mock.isHealthy)
    try await mock.send(.terminate).check()
  }

  // MARK: Not ready for a while

  /// It goes on, and is healthy.
  @Test func whatIsNotReadyForAWhileIsNoLongerSentRequests() async throws {
    let manager = try FakeServiceManager()
    let mock = MockLifecycleSubject(serviceManager: manager)
    let (states, continuation) = AsyncStream<String?>.makeStream()
    mock.addForeground(name: "web", draining: .seconds(5)) { round in
      for await lack in states.untilEnding(of: round) {
        if let lack { round.reportNotReady(because: lack) } else { round.reportReady() }
      }
    }
    try await mock.waitUntilInForeground()
    for lack in ["the database\nis down", "the queue is full"] {
      continuation.yield(lack)
      let line = lack.split(separator: "\n").joined(separator: "\\n")
      try await eventually {
        manager.service.statusText.contains("foreground without web (\(line)) since")
      }
      #expect(!mock.isReady && mock.isHealthy && mock.state == .foreground)
    }
    continuation.yield(nil)
    try await eventually { mock.isReady }
    try await eventually { !manager.service.statusText.contains("without") }
    continuation.yield("down again")
    try await eventually { !mock.isReady }
    // A round that ends has its reason no more.
    try await mock.send(.pause).check()
    try await mock.send(.resume).check()
    #expect(mock.isReady && manager.violations == [])
    try await mock.send(.terminate).check()
  }

  /// In a mock there is no machine to keep awake.
  @Test func whatKeepsTheMachineAwakeRuns() async throws {
    let mock = MockLifecycleSubject()
    mock.addForeground(mayReturn: true) { [log] round in
      let result = await round.keepingAwake(because: "writes a backup") { 7 }
      log.add("\(result)")
      try await round.keepingAwake(because: "fails") { throw TextError(text: "no disk") }
    }
    try await mock.waitUntilSettled()
    try await eventually { mock.exitResult?.exitStatus == 1 }
    #expect(log.all == ["7"])
  }

  // MARK: Stalls

  /// With a policy it is run again, if it ends when it is cancelled.
  @Test func whatStallsIsRunAgain() async throws {
    let manager = try FakeServiceManager()
    let mock = MockLifecycleSubject(serviceManager: manager)
    mock.addForeground(
      name: "consumer", restarting: .backoff(initialDelay: .seconds(1)), stallsAfter: .seconds(60)
    ) { [log] in
      log.add("begins")
      try await mock.clock.sleep(for: .seconds(1000))
    }
    try await mock.waitUntilInForeground()
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(60))
    try await eventually {
      manager.service.statusText.contains("consumer has failed once: no progress for 60 s")
    }
    await mock.advance(by: .seconds(1))
    try await eventually { log.all == ["begins", "begins"] }
    try await mock.send(.terminate).check()
  }

  // MARK: Work throughout

  @Test func itGoesOnInAPauseAndEndsBeforeTheSave() async throws {
    let mock = MockLifecycleSubject(state: .launching)
    mock.addTask(name: "heartbeats") { [log] _ in
      log.add("beats")
      do { try await mock.clock.sleep(for: .seconds(1000)) } catch {
        log.add("ends")
        throw error
      }
    }
    let token = mock.observe(DidEnterBackground.self) { [log] _ in log.add("paused") }
    let save = mock.observe(ShouldSaveState.self) { [log] _ in log.add("saves") }
    let launch = try await mock.launch()
    #expect(launch["heartbeats", DidFinishLaunching.self]?.outcome == .completed)
    try await mock.waitUntilSleeping()
    try await mock.send(.pause).check()
    try await mock.send(.resume).check()
    #expect(log.all == ["beats", "paused", "saves"])
    let end = try await mock.send(.terminate)
    try end.check()
    #expect(log.all == ["beats", "paused", "saves", "paused", "ends", "saves"])
    #expect(end["heartbeats", WillTerminate.self]?.outcome == .completed)
    token.cancel()
    save.cancel()
  }

  @Test func itIsRunAgainAlsoInAPause() async throws {
    let mock = MockLifecycleSubject()
    mock.addTask(name: "heartbeats", restarting: .backoff(initialDelay: .seconds(1))) { [log] _ in
      log.add("beats")
      if log.all.count == 1 { throw Failure() }
      try await mock.clock.sleep(for: .seconds(1000))
    }
    try await mock.waitUntilInForeground()
    try await mock.waitUntilSleeping()
    try await mock.send(.pause).check()
    await mock.advance(by: .seconds(1))
    try await eventually { log.all.count == 2 }
    try await mock.send(.terminate).check()
    #expect(mock.exitResult?.exitStatus == 0)
  }
}
