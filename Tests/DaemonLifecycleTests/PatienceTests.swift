// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle
@testable import DaemonLifecycleTesting

/// No wait of a mock is for ever, and its set-up is quiet.
@Suite(.timeLimit(.minutes(5))) struct PatienceTests {
  /// Of a mock that has a SIGUSR1 already.
  static let waits: [@Sendable (MockLifecycleSubject) async throws -> Void] = [
    { try await $0.send(.sigusr1) }, { try await $0.waitUntilSettled() },
    { try await $0.waitUntilSleeping() },
  ]

  /// Ends a pause as soon as it hears of it, as a lease may; a test begins to wait just then.
  private final class Resumer: LifecyclePart {
    let harness = Harness()
    let seen = Mutex<LifecycleState?>(nil)
    // Set before the first fact.
    nonisolated(unsafe) weak var core: LifecycleCore?

    func receive(_ fact: LifecycleFact) -> MonotonicTime? {
      guard case .ended(_, _, _, let snapshot) = fact, snapshot.state == .background, let core
      else { return nil }
      let waiter = Sleeper { [weak core] in
        let state = core?.lifecycleState
        self.seen.withLock { $0 = state }
      }
      harness.add(waiter, whenSleeping: nil)
      core.look()
      core.takeOwn(LifecycleEvent(.resume(for: .operator)))
      return nil
    }
  }

  @Test func whatFollowsFromAFactIsWaitedFor() async throws {
    let resumer = Resumer()
    let core = LifecycleCore(
      configuration: .init(logging: .off), initialState: .foreground, virtualTime: VirtualTime(),
      harness: resumer.harness, parts: [resumer])
    resumer.core = core
    core.add(Scripted(save: { _ in }))
    core.receive(LifecycleEvent(.pause(for: .operator)))
    try await core.untilIdle()
    try await eventually { resumer.seen.withLock { $0 } == .foreground }
    core.close()
  }

  // MARK: Waiting in vain

  /// Also where it is cancelled, as a test that has reached its time limit.
  @Test(arguments: waits.indices, [false, true])
  func whatIsPendingIsNamed(_ index: Int, isCancelled: Bool) async throws {
    let mock = MockLifecycleSubject(patience: isCancelled ? .seconds(3600) : .milliseconds(200))
    let (isIn, gate) = (Gate(), Gate())
    mock.addObserver(
      Scripted(save: { _ in
        isIn.open()
        await gate.wait()
      }), name: "orders")
    mock.inject(.sigusr1)
    await isIn.wait()
    let wait = Task { try await Self.waits[index](mock) }
    if isCancelled { wait.cancel() }
    let error = await #expect(throws: MockLifecycleSubject.PendingError.self) {
      try await wait.value
    }
    let text = try #require(error?.description)
    #expect(
      text.contains(
        isCancelled
          ? #/ was cancelled\. Still pending: /#
          : #/^[a-zA-Z0-9()]+ timed out: no hook has begun or ended in [0-9.]+ m?s of real time. Still pending: /#
      ))
    #expect(
      text.contains(
        "orders (Scripted) is still in its hook for ShouldSaveState (SIGUSR1 from pid 1 uid 0), after 0 ms;"
          + " its deadline is in 10 s"), "\(text)")
    gate.open()
    try await mock.core.untilIdle(patience: .seconds(250))
    try mock.checkNothingPending()
  }

  /// `send` waits for it, and only the test can move the clock.
  @Test func aHookThatSleepsOnTheClockIsSaid() async throws {
    let mock = MockLifecycleSubject(patience: .milliseconds(100))
    mock.addObserver(Scripted(save: { _ in try await mock.clock.sleep(for: .seconds(5)) }))
    let error = await #expect(throws: MockLifecycleSubject.PendingError.self) {
      try await mock.send(.saveState)
    }
    #expect(error?.description.contains("inject(_:) rather than send(_:)") == true, "\(error)")
    await mock.advance(by: .seconds(5))
    try await mock.core.untilIdle(patience: .seconds(250))
  }

  @Test func whoNeverSleepsIsSaid() async throws {
    let mock = MockLifecycleSubject(patience: .milliseconds(100))
    let error = await #expect(throws: MockLifecycleSubject.PendingError.self) {
      try await mock.waitUntilSleeping()
    }
    #expect(
      error?.description.hasSuffix(
        "Still pending: 0 of 1 sleep on the mock's clock.") == true, "\(error)")
  }

  @Test func aCheckThatIsNotAnsweredIsNamed() async throws {
    let mock = MockLifecycleSubject(patience: .milliseconds(100))
    try await mock.waitUntilSettled()
    // It has responded once, and is busy from now on.
    mock.core.handle(.healthAnswer(.mainActor))
    mock.core.state.withLock { $0.machine.health.isMainActorAsked = true }
    let error = await #expect(throws: MockLifecycleSubject.PendingError.self) {
      try await mock.send(.checkHealth)
    }
    // On a busy machine Swift's pool may not have answered either.
    let silent = ["the main actor does", "Swift's global executor, the main actor do"]
    let expected = silent.map { ["a check of health: \($0) not answer"] }
    #expect(expected.contains(error?.pending ?? []), "\(error?.pending ?? [])")
  }

  /// When something has happened.
  private final class Steps: Sendable {
    private let times = Mutex([ContinuousClock.now])
    func note() { times.withLock { $0.append(.now) } }
    /// The longest time from one to the third after it, since a hook has begun before it notes that.
    var longest: Duration {
      note()
      return times.withLock { times in
        zip(times, times.dropFirst(min(3, times.count - 1))).map { $1 - $0 }.max()!
      }
    }
  }

  /// Again with twice the patience, where it has been lost since nothing happened for as long: the machine was busy.
  private func untilPatientEnough(_ test: (Duration, Steps) async throws -> Void) async throws {
    var patience = Duration.milliseconds(900)
    while true {
      let steps = Steps()
      do { return try await test(patience, steps) } catch {
        try #require(error is MockLifecycleSubject.PendingError && steps.longest >= patience)
        patience *= 2
      }
    }
  }

  @Test func aTestThatMovesTheClockHasNotStalled() async throws {
    try await untilPatientEnough { patience, steps in
      let mock = MockLifecycleSubject(patience: patience)
      let gate = Gate()
      mock.addObserver(Scripted(save: gate.hold))
      let report = Task { try await mock.send(.saveState) }
      let end = ContinuousClock.now + patience * 2
      while ContinuousClock.now < end {
        await mock.advance(by: .microseconds(1))
        steps.note()
      }
      gate.open()
      let problems = try await report.value.problems
      #expect(problems.isEmpty)
    }
  }

  /// The time starts anew with each: hooks that take longer together than anybody waits.
  @Test func aSlowMachineIsNoFault() async throws {
    try await untilPatientEnough { patience, steps in
      let mock = MockLifecycleSubject(patience: patience)
      for _ in 0..<10 {
        mock.on(ShouldSaveState.self) { _ in
          steps.note()
          // Real time is what this is about: nothing is waited for.
          _ = Semaphore().wait(for: patience / 6)
          steps.note()
        }
      }
      let report = try await mock.send(.sigusr1)
      #expect(report.entries.filter { $0.outcome == .completed }.count == 10)
    }
  }

  // MARK: Setting up

  /// Each hears the launch before any hears the foreground, whatever the machine does meanwhile.
  @Test func whatWasAddedHearsOfItTogether() async throws {
    for _ in 0..<1000 {
      let (mock, log) = (MockLifecycleSubject(), Log())
      for number in 0..<3 { mock.addObserver(Listener("\(number)", log)) }
      #expect(log.all.isEmpty && mock.reports.isEmpty)
      try mock.checkNothingPending()
      try await mock.send(.sigusr2)
      try #require(
        log.all == [
          "0 launch", "1 launch", "2 launch", "0 foreground", "1 foreground", "2 foreground",
        ])
    }
  }

  private actor Launching: LaunchObserver, ForegroundObserver, BackgroundObserver {
    func didFinishLaunching(_ notification: DidFinishLaunching) async { await Task.yield() }
    func willEnterForeground(_ notification: WillEnterForeground) {}
    func didEnterBackground(_ notification: DidEnterBackground) {}
  }

  /// A termination would overtake the launch, and what comes after the first must not overtake that.
  @Test func theFirstEventWaitsForTheLaunch() async throws {
    for run in 0..<300 {
      let mock = MockLifecycleSubject()
      mock.addObserver(Launching())
      if run % 2 == 0 { mock.inject(.sighup) }
      if run % 3 == 0 { mock.terminate() } else { mock.inject(.sigterm) }
      try await mock.waitUntilSettled()
      var steps = ["DidFinishLaunching", "WillEnterForeground"]
      // SIGHUP is overtaken, or half or all of it is not; it never takes the launch's place.
      steps += ["DidEnterBackground", "ShouldSaveState", "WillTerminate"]
      var delivered = mock.delivered.map { "\(type(of: $0))" }
      for step in ["ShouldSaveState", "ShouldReload"] where delivered.dropFirst(2).first == step {
        delivered.remove(at: 2)
      }
      #expect(delivered == steps && mock.exitResult?.exitStatus == 0, "run \(run)")
    }
  }

  @Test(arguments: ["inject", "post", "pause", "advance", "waitUntilSleeping", "terminate"])
  func whateverIsAskedForEndsTheSetUp(_ what: String) async throws {
    let (mock, log) = (MockLifecycleSubject(), Log())
    mock.addObserver(Listener("it", log))
    switch what {
    case "inject": mock.inject(.sighup)
    case "post": await mock.post(Marker())
    case "pause": mock.pause(for: .operator)
    case "advance": await mock.advance(by: .seconds(1))
    case "terminate": mock.terminate()
    default:
      let sleeping = Task { try await mock.clock.sleep(for: .seconds(1)) }
      try await mock.waitUntilSleeping()
      sleeping.cancel()
    }
    try await eventually { log.all.first == "it launch" }
    try await mock.waitUntilSettled()
  }

  private struct Marker: CustomNotification {}
}
