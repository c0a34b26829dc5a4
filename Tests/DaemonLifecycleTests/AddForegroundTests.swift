// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Glibc
import TestSupport
import Testing

@testable import DaemonLifecycle
@testable import DaemonLifecycleFiles

/// `addForeground`: work that no caller waits for.
@Suite(.timeLimit(.minutes(5))) struct AddForegroundTests {
  private let log = Log()
  private let mock = MockLifecycleSubject()

  private struct BadDisk: ExitStatusError { var exitStatus: Int32 { 74 } }

  /// Returns how the mock has ended, once it has.
  private func ending() async throws -> LifecycleExit {
    for await _ in mock.notifications(of: WillTerminate.self) {}
    return try #require(mock.exitResult)
  }

  @Test func partsNeedNoTaskGroupAndKeepTheirPlaces() async throws {
    for name in ["a", "b"] {
      mock.addForeground(name: name) { [log, mock] in
        log.add("\(name) begins")
        defer { log.add("\(name) ends") }
        try await mock.clock.sleep(for: .seconds(1000))
      }
    }
    try await mock.waitUntilSleeping(2)
    let pause = try await mock.send(.pause)
    try pause.check()
    let paused = pause.entries.filter { $0.notification == DidEnterBackground.self }
    #expect(paused.map(\.observer) == ["b", "a"])
    #expect(log.all.count == 4)

    try await mock.send(.resume)
    try await mock.waitUntilSleeping(2)
    try await mock.send(.terminate).check()
    #expect(log.all.count == 8 && mock.exitResult?.exitStatus == 0)
    try mock.checkNothingPending()
  }

  /// Who throws a cancellation that nobody has asked for has failed.
  @Test func aCancellationOfItsOwnIsAnErrorLikeOthers() async throws {
    mock.addForeground(name: "part") { throw CancellationError() }
    try await mock.waitUntilSettled()
    #expect(try await ending().exitStatus == 1)
  }

  /// Also before its turn has come: its connection may have been closed by who pauses before it, and a child process has
  /// had the same signal. It is in the report, and has no other effect.
  @Test(arguments: [nil, 0, 77] as [Int32?])
  func anErrorInAStopIsInItsReport(_ status: Int32?) async throws {
    mock.addForeground(name: "part") { [clock = mock.clock] in
      try await clock.sleep(for: .seconds(1))
      throw BadDisk()
    }
    mock.on(DidEnterBackground.self) { [clock = mock.clock] _ in
      try await clock.sleep(for: .seconds(3))
    }
    try await mock.waitUntilSleeping()
    if let status {
      mock.terminate(because: "no licence", exitStatus: status)
    } else {
      mock.inject(.sigterm)
    }
    try await mock.waitUntilSleeping(2)
    await mock.advance(by: .seconds(3))
    try await mock.waitUntilSettled()
    #expect(mock.exitResult?.exitStatus == status ?? 0 && mock.exitResult?.error == nil)
    let entry = mock.exitResult?.report["part", DidEnterBackground.self]
    #expect(entry?.outcome == .failed(BadDisk()))
    #expect(mock.exitResult?.report.cause.signal == (status == nil ? .sigterm : nil))
  }

  /// A transaction goes on, though it was cancelled: it is committed before the state is saved, and the process exits.
  @Test(arguments: [false, true]) func aStopWaitsForABodyThatAPauseHasAbandoned(
    isResumed: Bool
  ) async throws {
    let gate = Gate()
    mock.addForeground(name: "job") { [log] in
      await gate.wait()
      log.add("committed")
    }
    mock.on(ShouldSaveState.self) { [log] _ in log.add("saved") }
    try await mock.waitUntilInForeground()
    mock.inject(.sigusr1)
    await mock.advance(by: .seconds(20))
    try await mock.waitUntilSettled()
    if isResumed { try await mock.send(.sigusr2) }
    mock.inject(.sigterm)
    gate.open()
    let exit = try await ending()
    #expect(log.all == ["saved", "committed", "saved"] && exit.exitStatus == 0)
    #expect(exit.report["job", DidEnterBackground.self]?.outcome == .completed)
  }

  /// Of two errors the first ends the daemon; another, in a daemon that ends already, changes nothing.
  @Test func theFirstErrorCounts() async throws {
    for name in ["a", "b"] { mock.addForeground(name: name) { throw BadDisk() } }
    try await mock.waitUntilSettled()
    let ending = try await ending()
    #expect(ending.exitStatus == 74)
    #expect(["a threw BadDisk()", "b threw BadDisk()"].contains("\(ending.report.cause)"))
  }

  /// A pause ends the wait for the next attempt, and the round with it.
  @Test func itDrainsAndRestarts() async throws {
    mock.addForeground(
      name: "part", draining: .seconds(20), restarting: .backoff(initialDelay: .seconds(100))
    ) { [log] round in
      log.add("begins")
      if log.all.count > 2 { return try await round.waitUntilEnding() }
      throw Failure()
    }
    try await mock.waitUntilSleeping()
    #expect(log.all == ["begins"])
    try await mock.send(.pause).check()
    try await mock.send(.resume)
    try await mock.waitUntilSleeping()
    #expect(log.all == ["begins", "begins"])
    await mock.advance(by: .seconds(200))
    #expect(log.all == ["begins", "begins", "begins"])
    try await mock.send(.terminate).check()
    #expect(mock.exitResult?.exitStatus == 0)
  }

  /// Its post would wait for the pause, which waits for the body.
  @Test func aBodyThatPostsDoesNotDelayItsPause() async throws {
    struct Polled: CustomNotification {}
    let token = mock.observe(Polled.self) { [log] _ in log.add("polled") }
    mock.addForeground(name: "polling") { [mock] in
      while true {
        await mock.post(Polled())
        try Task.checkCancellation()
      }
    }
    for _ in 0..<100 {
      mock.inject(.resume)
      while log.all.isEmpty { await Task.yield() }
      // Without time that passes.
      try await mock.send(.pause).check()
      log.clear()
    }
    try await mock.send(.terminate).check()
    token.cancel()
  }

  /// A pause waits for the body, whose post must not wait for the pause: one that it posts then, and one that waits.
  @Test(arguments: [false, true]) func aBodyThatPostsWhileItFinishesIsNotCutOff(waits: Bool)
    async throws
  {
    struct Done: CustomNotification {}
    let token = mock.observe(Done.self) { [log] _ in log.add("done") }
    let pressure = mock.observe(DidReceivePressure.self) { [mock] _ in
      try await mock.clock.sleep(for: .seconds(2))
    }
    mock.addForeground(name: "server", draining: .seconds(20)) { [log, mock] round in
      if waits {
        try await mock.clock.sleep(for: .seconds(1))
      } else {
        try await round.waitUntilEnding()
      }
      log.add("posts")
      await mock.post(Done())
      log.add("ends")
    }
    if waits {
      mock.inject(.pressure)
      mock.inject(.pause)
      try await mock.waitUntilSleeping(2)
      await mock.advance(by: .seconds(1))
      try await eventually { log.all == ["posts"] }
      await mock.advance(by: .seconds(1))
      try await mock.waitUntilSettled().check()
    } else {
      try await mock.send(.pause).check()
    }
    #expect(log.all == ["posts", "done", "ends"])
    token.cancel()
    pressure.cancel()
  }

  @Test func aResumeDuringADrainIsInTheStatus() async throws {
    let manager = try FakeServiceManager()
    let mock = MockLifecycleSubject(serviceManager: manager)
    mock.addForeground(name: "server", draining: .seconds(60)) { [mock] round in
      try await round.waitUntilEnding()
      try await mock.clock.sleep(for: .seconds(30))
    }
    try await mock.waitUntilSettled()
    mock.inject(.pause)
    try await mock.waitUntilSleeping()
    mock.inject(.resume)
    await mock.advance(by: .seconds(10))
    let status = manager.service.statusText
    #expect(status.hasSuffix("waiting for server, 10 s; then a resume"), "\(status)")
    await mock.advance(by: .seconds(20))
    try await mock.waitUntilSettled()
    #expect(mock.state == .foreground)
    mock.inject(.terminate)
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(30))
    try await mock.waitUntilSettled().check()
  }

  // MARK: finish(within:)

  @Test(arguments: [2, 1000]) func aJobHasTimeToFinish(seconds: Int) async throws {
    mock.addForeground(name: "jobs", draining: .seconds(8)) { [log, mock] round in
      let isDone = try await round.finish(within: .seconds(3)) {
        try await mock.clock.sleep(for: .seconds(seconds))
      }
      log.add(isDone ? "done" : "handed back")
    }
    try await mock.waitUntilSleeping()
    mock.inject(.terminate)
    try await mock.waitUntilSleeping(2)  // the job, and its limit
    await mock.advance(by: .seconds(3))
    try await mock.waitUntilSettled().check()
    #expect(log.all == [seconds == 2 ? "done" : "handed back"])
    #expect(mock.exitResult?.exitStatus == 0)
  }

  /// As at a second signal, and whichever of its two tasks ends first.
  @Test func aJobThatIsCancelledWithItsCallerIsHandedBack() async throws {
    for _ in 1...100 {
      let job = Task {
        try await WorkRound().finish(within: .seconds(1000)) {
          try await Task.sleep(for: .seconds(1000))
        }
      }
      job.cancel()
      #expect(try await !job.value)
    }
  }

  @Test func withoutAnEndAJobHasAllTime() async throws {
    let round = WorkRound()
    #expect(try await round.finish(within: .zero) {})
    await #expect(throws: Failure.self) {
      try await round.finish(within: .zero) { throw Failure() }
    }
    round.end()
    #expect(try await round.finish(within: .seconds(1000)) {})
    #expect(
      try await !round.finish(within: .milliseconds(1)) {
        try await Task.sleep(for: .seconds(1000))
      })
  }

  // MARK: The mock

  /// What a metric or an audit log reads, without parsing a text.
  @Test func whatHasHappenedAndWhyAreValues() async throws {
    let token = mock.observe(DidEnterBackground.self) { [mock] _ in
      #expect(mock.backgroundReasons == [.operator])
      try await mock.clock.sleep(for: .seconds(2))
    }
    try await mock.waitUntilSettled()
    mock.inject(.sigusr1, fromPID: 7, uid: 8)
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(2))
    let report = try #require(mock.reports.last)
    #expect(report.event == "background" && report.duration == .seconds(2))
    #expect(report.cause.senderPID == 7 && report.cause.senderUID == 8)
    #expect(report.cause == report.cause && report.cause != mock.reports[0].cause)
    #expect(mock.reports[0].cause.senderPID == nil)
    try await mock.send(.sigusr2)
    #expect(mock.backgroundReasons.isEmpty)
    token.cancel()
  }

  @Test func aReportThrowsItsSentences() async throws {
    let token = mock.observe(ShouldSaveState.self, name: "orders") { _ in throw Failure() }
    let report = try await mock.send(.saveState)
    let error = #expect(throws: (any Error).self) { try report.check() }
    let text = "\(try #require(error))"
    #expect(
      text.hasPrefix("a test:\n  orders, ShouldSaveState: failed after 0 ms: Failure()"), "\(text)")
    let again = try await mock.send(.saveState)
    #expect(report.entries == again.entries)
    token.cancel()
    try await mock.send(.saveState).check()
  }

  @Test func theCauseOfATerminationIsGiven() async throws {
    mock.terminate(because: "the disk is full")
    let report = try await mock.waitUntilSettled()
    #expect(report.problems.isEmpty)
    #expect("\(try #require(mock.exitResult).report.cause)" == "the disk is full")
    #expect(mock.exitResult?.exitStatus == 0)
  }

  /// It comes before that of a hook that failed, as the status of an error does.
  @Test func theStatusOfATerminationIsGiven() async throws {
    let token = mock.observe(WillTerminate.self, name: "orders") { _ in throw Failure() }
    mock.terminate(exitStatus: 3)
    mock.terminate(exitStatus: 4)
    try await mock.waitUntilSettled()
    #expect(mock.exitResult?.exitStatus == 3)
    withExtendedLifetime(token) {}
  }

  /// exit(256) would be a success.
  @Test(arguments: [-1, 256] as [Int32]) func aStatusOfAFailureIsOne(status: Int32) async throws {
    mock.terminate(exitStatus: status)
    try await mock.waitUntilSettled()
    #expect(mock.exitResult?.exitStatus == 1)
  }

  // MARK: Probes

  @Test func probesReadTheFiles() throws {
    let folder = try Folder()
    var configuration = LifecycleConfiguration()
    #expect(configuration.answer("ready").code == 64 && configuration.answer("well").code == 64)
    // The daemon makes none.
    let relative = LifecycleConfiguration(interfaces: [.readinessFile("ready")])
    #expect(relative.answer("ready").code == 64)
    configuration.interfaces += [
      .readinessFile(folder.path("ready")), .livenessFile(folder.path("alive")),
    ]
    for probe in ["ready", "alive"] {
      #expect(
        configuration.answer(probe) == (1, "not \(probe): there is no \(folder.path)/\(probe)"))
      try folder.write("", to: probe)
      #expect(configuration.answer(probe).code == 0)
    }
    // Not touched for long, or by a daemon whose clock was set back since.
    for seconds in [-70, 70] {
      age(folder.path("alive"), seconds: seconds)
      #expect(configuration.answer("alive").code == 1)
    }
    // As `touch` sets it on a tmpfs.
    for time in [Int.min, Int.max] {
      let times = Array(repeating: timespec(tv_sec: time, tv_nsec: 0), count: 2)
      utimensat(AT_FDCWD, folder.path("alive"), times, 0)
      #expect(configuration.answer("alive").code == 1)
    }
    configuration.interfaces.append(.livenessFile(folder.path))
    #expect(configuration.answer("alive") == (1, "not alive: \(folder.path) is not a file"))
  }
}
