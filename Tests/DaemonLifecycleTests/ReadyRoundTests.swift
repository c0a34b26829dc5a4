// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Work that says when it is ready: the daemon is in the foreground once it is.
@Suite(.timeLimit(.minutes(5))) struct ReadyRoundTests {
  private let log = Log()

  /// Binds for a while, or can't.
  private final class Port: Sendable {
    let isTaken = Mutex(false)
    let clock: LifecycleClock
    init(_ clock: LifecycleClock) { self.clock = clock }

    func bind() async throws {
      if isTaken.withLock(\.self) { throw Failure() }
      try await clock.sleep(for: .seconds(3))
    }
  }

  private func serve(
    _ mock: MockLifecycleSubject, draining limit: Int = 5, restarting: RestartPolicy? = nil
  ) -> Port {
    let port = Port(mock.clock)
    mock.addForeground(
      name: "server", draining: .seconds(limit), restarting: restarting,
      readyWithin: .seconds(limit)
    ) { [log] round in
      log.add("begins")
      try await port.bind()
      round.reportReady()
      round.reportReady()
      try await round.waitUntilEnding()
      log.add("ends")
    }
    return port
  }

  @Test func theLaunchWaits() async throws {
    let manager = try FakeServiceManager()
    let mock = MockLifecycleSubject(state: .launching, serviceManager: manager)
    _ = serve(mock)
    mock.addForeground(name: "client", phase: LifecyclePhase(order: 1)) { [log] in log.add("client")
    }
    let launch = Task { try await mock.launch() }
    try await mock.waitUntilSleeping()
    #expect(!manager.service.isReady && log.all == ["begins"])
    await mock.advance(by: .seconds(3))
    try await launch.value.check()
    #expect(manager.service.isReady)
    try await mock.send(.terminate).check()
    #expect(log.all == ["begins", "client", "ends"])
  }

  /// A database that comes up 20 s later, as in the guide.
  @Test func theLaunchWaitsForWhatItNeeds() async throws {
    let mock = MockLifecycleSubject(state: .launching)
    let isUp = Atomic(false)
    mock.addTask(
      name: "database",
      restarting: .backoff(maximumDelay: .seconds(5), maximumFailures: nil),
      readyWithin: .seconds(60), mayReturn: true
    ) { round in
      guard isUp.load(ordering: .relaxed) else { throw Failure() }
      round.reportReady()
    }
    mock.addForeground(name: "server") { [log] in log.add("serves") }
    let launch = Task { try await mock.launch() }
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(20))
    #expect(!mock.isReady && log.all.isEmpty && mock.exitResult == nil, "\(mock.state)")
    isUp.store(true, ordering: .relaxed)
    await mock.advance(by: .seconds(5))
    try await launch.value.check()
    #expect(mock.isReady && log.all == ["serves"])
  }

  /// The launch waits for it, and it for its post.
  @Test(arguments: [LifecycleState.launching, .foreground])
  func itMayPostBefore(state: LifecycleState) async throws {
    struct Listening: CustomNotification {}
    let mock = MockLifecycleSubject(state: state)
    let token = mock.observe(Listening.self) { [log] _ in log.add("listening") }
    mock.addForeground(name: "server", readyWithin: .seconds(10)) { round in
      await mock.post(Listening())
      round.reportReady()
    }
    if state == .launching { try await mock.launch().check() }
    // A mock at work is launched by it, and the pause waits for the launch.
    try await mock.send(.pause).check()
    #expect(log.all == ["listening"])
    token.cancel()
  }

  @Test func anErrorBeforeIsAFailedLaunch() async throws {
    let mock = MockLifecycleSubject(state: .launching)
    serve(mock).isTaken.withLock { $0 = true }
    let launch = try await mock.launch()
    #expect(launch["server", WillEnterForeground.self]?.outcome == .failed(Failure()))
    try await mock.waitUntilSettled()
    let ending = try #require(mock.exitResult)
    #expect(ending.exitStatus == 70 && "\(ending.report.cause)" == "the launch failed")
  }

  /// `RestartPreventExitStatus=` goes by the status, and the operator by the sentence.
  @Test(arguments: ["foreground", "task", "restarts", "still restarts", "hook"])
  func aLaunchFailsWithTheStatusOfItsError(by form: String) async throws {
    struct BadConfiguration: ExitStatusError { var exitStatus: Int32 { 78 } }
    let manager = try FakeServiceManager()
    let mock = MockLifecycleSubject(state: .launching, serviceManager: manager)
    let body = { @Sendable (_: WorkRound) async throws in throw BadConfiguration() }
    switch form {
    case "foreground": mock.addForeground(name: "web", readyWithin: .seconds(9), body)
    case "task": mock.addTask(name: "web", readyWithin: .seconds(9), body)
    case "restarts":
      let policy = RestartPolicy.backoff(initialDelay: .seconds(1), maximumFailures: 1)
      mock.addForeground(name: "web", restarting: policy, readyWithin: .seconds(9), body)
    case "still restarts":
      let policy = RestartPolicy.backoff(initialDelay: .seconds(9))
      mock.addTask(name: "web", restarting: policy, readyWithin: .seconds(9), body)
    default: mock.on(DidFinishLaunching.self) { _ in throw BadConfiguration() }
    }
    // Of a hook in the stop it counts only that it failed.
    mock.on(ShouldSaveState.self) { _ in throw Failure() }
    let launch = Task { try await mock.launch() }
    if form.hasSuffix("restarts") {
      try await mock.waitUntilSleeping()
      await mock.advance(by: .seconds(form == "restarts" ? 1 : 9))
    }
    let isLate = form == "still restarts"
    #expect(
      try await launch.value.problems.map(\.outcome)
        == [isLate ? .timedOut : .failed(BadConfiguration())])
    try await eventually { mock.exitResult != nil }
    #expect(mock.exitResult?.exitStatus == 78)
    try await eventually { manager.service.statusText.hasPrefix("ended with status 78") }
    #expect(manager.service.statusText.contains("the launch failed; "))
    #expect(manager.service.statusText.contains(": BadConfiguration()"))
  }

  /// As for every observer, a resume that failed is tried again, and meanwhile the daemon is not ready.
  @Test func afterAFailedResumeItIsTriedAgain() async throws {
    let mock = MockLifecycleSubject()
    let port = serve(mock)
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(3))
    try await mock.send(.pause).check()
    port.isTaken.withLock { $0 = true }
    let resume = try await mock.send(.resume)
    #expect(resume["server", WillEnterForeground.self]?.outcome == .failed(Failure()))
    #expect(!mock.core.isReady && mock.exitResult == nil)
    port.isTaken.withLock { $0 = false }
    await mock.advance(by: .seconds(1))
    // Its body runs on Swift's pool, which may be busy.
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(3))
    try await mock.waitUntilSettled()
    #expect(mock.core.isReady)
    try await mock.send(.terminate).check()
    #expect(log.all == ["begins", "ends", "begins", "begins", "ends"])
  }

  /// The hook has its time, and the body goes on: the next call of the hook waits for the same round.
  @Test func oneThatIsSlowIsWaitedForAgain() async throws {
    let mock = MockLifecycleSubject(state: .background)
    _ = serve(mock, draining: 2)
    mock.inject(.resume)
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(2))
    let report = try await mock.waitUntilSettled()
    #expect(report["server", WillEnterForeground.self]?.outcome == .timedOut)
    #expect(!mock.core.isReady)
    await mock.advance(by: .seconds(1))
    try await mock.waitUntilSettled()
    #expect(mock.core.isReady && log.all == ["begins"])
    try await mock.send(.terminate).check()
    #expect(log.all == ["begins", "ends"])
  }

  @Test func aStopDoesNotWaitForIt() async throws {
    let mock = MockLifecycleSubject(state: .background)
    _ = serve(mock, draining: 2)
    mock.inject(.resume)
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(2))
    try await mock.send(.terminate)
    #expect(log.all == ["begins"] && mock.exitResult?.exitStatus == 0)
    try mock.checkNothingPending()
  }

  /// It has nothing to finish, and the launch is over.
  @Test func aStopInTheLaunchDoesNotWaitForIt() async throws {
    let mock = MockLifecycleSubject(state: .launching)
    _ = serve(mock, draining: 20)
    let launch = Task { try await mock.launch() }
    try await mock.waitUntilSleeping()
    mock.inject(.sigterm)
    _ = try await launch.value
    #expect(log.all == ["begins"] && mock.exitResult?.exitStatus == 0)
    try mock.checkNothingPending()
  }

  @Test func restartsBelongToOneWait() async throws {
    let mock = MockLifecycleSubject()
    let port = serve(mock, restarting: .backoff(initialDelay: .seconds(1)))
    port.isTaken.withLock { $0 = true }
    try await mock.waitUntilSleeping()
    port.isTaken.withLock { $0 = false }
    await mock.advance(by: .seconds(4))
    let report = try await mock.waitUntilSettled()
    #expect(report["server", WillEnterForeground.self]?.outcome == .completed)
    #expect(mock.core.isReady && log.all == ["begins", "begins"])
    try await mock.send(.terminate).check()
  }

  @Test func aBodyThatReturnsIsReady() async throws {
    let mock = MockLifecycleSubject()
    mock.addForeground(readyWithin: .seconds(10), mayReturn: true) { _ in }
    try await mock.waitUntilInForeground()
    try await mock.send(.terminate).check()
    await #expect(throws: MockLifecycleSubject.PendingError.self) {
      try await mock.waitUntilInForeground()
    }
  }
}
