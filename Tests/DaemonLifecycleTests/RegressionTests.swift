// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Each of these has gone wrong once.
@Suite struct RegressionTests {
  private let log = Log()
  private let configuration = LifecycleConfiguration(
    signals: [:], hookTimeout: .milliseconds(100), cancellationGrace: .milliseconds(50),
    exitGrace: nil, logging: .off)

  /// The registry planned for members whose entries were gone, again and again, under the lock.
  @Test(.timeLimit(.minutes(5))) func aMockThatGoesAwayInTheMidstOfADelivery() async throws {
    let (began, ends) = (Gate(), Gate())
    let slow = Scripted(foreground: { _ in
      began.open()
      await ends.wait()
    })
    let other = Listener("other", log)
    var mock: MockLifecycleSubject? = MockLifecycleSubject()
    let core = try #require(mock).core
    let stream = try #require(mock).reports()
    mock?.addObserver(slow)
    mock?.addObserver(other)
    mock?.core.endSetUp()
    await began.wait()
    mock = nil
    ends.open()
    for await _ in stream {}  // finishes though nothing terminated
    try await eventually { core.executor.isQuiet }
    #expect(core.lifecycleState == .foreground)
  }

  @Test(.timeLimit(.minutes(5))) func aSleepOnTheClockOfASubjectThatGoesAway() async throws {
    var subject: LifecycleSubject? = LifecycleSubject(configuration: configuration)
    try await subject?.start()
    let core = try #require(subject).core
    let task = Task { try await LifecycleClock(keeper: core).sleep(until: .distantFuture) }
    try await eventually { core.sleeperCount == 1 }
    subject = nil
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  /// A loop that ignores the error is not to take a processor.
  @Test(.timeLimit(.minutes(5))) func sleepsOfOneThatIsClosedTakeAMoment() async throws {
    let mock = MockLifecycleSubject()
    let clock = mock.clock
    mock.core.close()
    let time = await ContinuousClock().measure {
      for _ in 0..<3 {
        await #expect(throws: CancellationError.self) { try await clock.sleep(for: .seconds(3600)) }
      }
    }
    #expect(time >= .milliseconds(300))
  }

  /// It kept the grace of the time before the stop, and ended that much after the budget.
  @Test func moreTimeForAHookIsNoneForTheStop() async throws {
    let mock = MockLifecycleSubject(
      configuration: LifecycleConfiguration(
        hookTimeout: .seconds(30), stopTimeout: .seconds(4), saveReserve: .zero, exitGrace: nil,
        logging: .off))
    let gate = Gate()
    mock.addObserver(
      Scripted(save: { [unowned mock] notification in
        try await mock.clock.sleep(for: .milliseconds(2900))
        notification.context.extendDeadline(by: .seconds(60))
        await gate.wait()
      }))
    try await mock.waitUntilSettled()
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(4))
    #expect(mock.exitResult?.exitStatus == 124)
    gate.open()
    try await mock.waitUntilSettled()
  }

  /// A hold that the body of `run` releases kept the body from beginning.
  @Test(.timeLimit(.minutes(5))) func aLaunchIsNotHeld() async throws {
    let mock = MockLifecycleSubject(state: .launching)
    mock.addObserver(Listener("a", log))
    let hold = mock.holdDeliveries()
    try await mock.launch()
    mock.inject(.sighup)
    try await mock.waitUntilSettled()
    #expect(log.all == ["a launch", "a foreground"])
    hold.cancel()
    try await mock.waitUntilSettled()
    #expect(log.all.suffix(2) == ["a save", "a reload"])
  }

  /// In a mock at work the launch comes before what a test sends first, which must not hide that it has failed.
  @Test func aLaunchThatFailsIsInTheFirstReport() async throws {
    final class Broken: LaunchObserver {
      func didFinishLaunching(_ notification: DidFinishLaunching) throws { throw Failure() }
    }
    let mock = MockLifecycleSubject()
    mock.addObserver(Broken())
    let pause = try await mock.send(.sigusr1)
    #expect(pause.problems.map(\.observer) == ["Broken"])
  }

  /// It had failed to read its state, and was asked to save over it.
  @Test func anObserverThatCouldNotLaunchIsNotAskedToSave() async throws {
    final class Broken: LaunchObserver, SaveObserver, TerminationObserver {
      let log: Log
      init(_ log: Log) { self.log = log }
      func didFinishLaunching(_ notification: DidFinishLaunching) throws { throw Failure() }
      func shouldSaveState(_ notification: ShouldSaveState) { log.add("broken save") }
      func willTerminate(_ notification: WillTerminate) { log.add("broken terminate") }
    }
    let mock = MockLifecycleSubject(state: .launching)
    let (broken, healthy) = (Broken(log), Listener("healthy", log))
    mock.addObserver(broken)
    mock.addObserver(healthy)
    mock.addObserver(Scripted(foreground: { _ in log.add("f") }, save: { _ in log.add("saves") }))
    try await mock.launch()
    try await mock.waitUntilSettled()
    // What has no hook for the launch has nothing to restore.
    #expect(log.all == ["healthy launch", "saves", "healthy save", "healthy terminate"])
    #expect(mock.exitResult?.exitStatus == 70)
    #expect(mock.exitResult?.failedLaunch?.problems.count == 1)
  }

  /// The transition that was held back became part of the termination's report, and of the exit's code.
  @Test func aTerminationDoesNotInheritAHeldTransition() async throws {
    let mock = MockLifecycleSubject()
    let hold = Mutex<LifecycleToken?>(nil)
    mock.addObserver(
      Scripted(background: { [unowned mock] _ in
        hold.withLock { $0 = mock.holdDeliveries() }
        throw Failure()
      }))
    try await mock.send(.sigusr1)
    try await mock.send(.terminate)
    #expect(mock.exitResult?.exitStatus == 0)
    #expect(mock.exitResult?.report.problems.isEmpty == true)
    #expect(
      mock.reports.filter { !$0.problems.isEmpty }.map { "\($0.cause)" } == [
        "SIGUSR1 from pid 1 uid 0"
      ])
    hold.withLock { $0 }?.cancel()
  }

  /// It waited for a hook that its observer never heard.
  @Test(.timeLimit(.minutes(5)), arguments: [LifecycleState.launching, .background, .foreground])
  func foregroundEndsWithTheDaemon(_ state: LifecycleState) async throws {
    let configuration = LifecycleConfiguration(
      stopTimeout: .seconds(2), saveReserve: .seconds(1), exitGrace: nil, logging: .off)
    let mock = MockLifecycleSubject(state: state, configuration: configuration)
    let gate = Gate()
    mock.addObserver(Scripted(save: gate.hold))
    let task = Task { try await mock.foreground {} }
    try await eventually { !mock.core.state.withLock { $0.machine.works.all.isEmpty } }
    try await mock.waitUntilSettled()
    mock.inject(.terminate)
    await mock.advance(by: .seconds(3))
    try await task.value
    try await mock.foreground { Issue.record("a round after the end") }
    gate.open()
  }

  @Test func aQueueKeepsItsOrder() {
    var queue = Deque<Int>()
    queue.append(0)
    for number in 1...10_000 {
      queue.append(number)
      #expect(queue.popFirst() == number - 1)
    }
    #expect(queue.count == 1)
    #expect(queue.popFirst() == 10_000)
    #expect(queue.popFirst() == nil)
  }

  /// An item was given to an idle thread without telling the one that listens, which slept through its blocking.
  @Test(.timeLimit(.minutes(5))) func oneBlockedActorDoesNotHoldAnother() async throws {
    actor Lane {
      private let executor: LifecycleSerialExecutor
      nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
      init(_ subject: LifecycleSubject) { executor = subject.makeSerialExecutor() }
      func block(_ isIn: Gate, _ release: Blocker) {
        isIn.open()
        release.wait()
      }
      func answer() {}
    }
    let subject = LifecycleSubject(configuration: configuration)
    try await subject.start()
    let (blocked, free) = (Lane(subject), Lane(subject))
    await free.answer()  // a thread is idle, or soon will be
    let isIn = Gate()
    let release = Blocker()
    let task = Task { await blocked.block(isIn, release) }
    await isIn.wait()
    await free.answer()
    release.signal()
    await task.value
  }
}

/// What blocks a thread until the test lets it go.
private typealias Blocker = DaemonLifecycle.Semaphore
