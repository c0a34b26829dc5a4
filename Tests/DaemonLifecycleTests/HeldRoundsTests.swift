// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// A round begins only when the hooks before it have completed.
@Suite(.timeLimit(.minutes(5))) struct HeldRoundsTests {
  private let log = Log()

  /// Can be reached or not.
  private final class Database: ForegroundObserver {
    let isUp: Mutex<Bool>
    let tries = Mutex(0)
    init(isUp: Bool) { self.isUp = Mutex(isUp) }
    func willEnterForeground(_ notification: WillEnterForeground) throws {
      tries.withLock { $0 += 1 }
      if !isUp.withLock({ $0 }) { throw Failure() }
    }
  }

  private func poll(
    _ mock: MockLifecycleSubject, phase: LifecyclePhase = .standard
  ) -> Task<Void, any Error> {
    Task {
      try await mock.foreground(name: "polling", phase: phase) {
        log.add("polls")
        try await mock.clock.sleep(for: .seconds(1000))
      }
    }
  }

  private func outcomes(_ report: LifecycleReport) -> [LifecycleReport.Outcome?] {
    ["Database", "polling"].map { report[$0, WillEnterForeground.self]?.outcome }
  }

  private static let held: [LifecycleReport.Outcome?] = [
    .failed(Failure()), .skipped(.earlierHookFailed),
  ]

  /// A daemon that was resumed, when its database could not be reached any more.
  private func held(
    _ database: Database, _ manager: FakeServiceManager
  ) async throws -> (MockLifecycleSubject, Task<Void, any Error>) {
    let mock = MockLifecycleSubject(serviceManager: manager)
    mock.addObserver(database)
    let task = poll(mock)
    try await mock.waitUntilSleeping()
    try await mock.send(.sigusr1)
    database.isUp.withLock { $0 = false }
    log.clear()
    #expect(outcomes(try await mock.send(.sigusr2)) == Self.held)
    return (mock, task)
  }

  /// Whether it is tried again after each of these times, and not before.
  private func expectRetries(
    of database: Database, after times: [Int], _ mock: MockLifecycleSubject
  ) async throws {
    for seconds in times {
      let tries = database.tries.withLock { $0 }
      await mock.advance(by: .seconds(seconds) - .milliseconds(1))
      #expect(database.tries.withLock { $0 } == tries)
      await mock.advance(by: .milliseconds(1))
      try await mock.waitUntilSettled()
      #expect(database.tries.withLock { $0 } == tries + 1)
      #expect(mock.core.state.withLock { !$0.machine.isReady })
    }
  }

  @Test(arguments: [UnixSignal.sigusr2, .sighup])
  func aResumeOrAReloadTriesAgain(signal: UnixSignal) async throws {
    let (manager, database) = (try FakeServiceManager(), Database(isUp: true))
    let (mock, task) = try await held(database, manager)
    #expect(manager.service.statusText.hasPrefix("foreground without Database, polling since"))
    #expect(outcomes(try await mock.send(signal)) == Self.held)
    // A save tries nothing.
    #expect(outcomes(try await mock.send(.saveState)) == [nil, nil])
    #expect(log.all.isEmpty && mock.state == .foreground)
    database.isUp.withLock { $0 = true }
    #expect(outcomes(try await mock.send(signal)) == [.completed, .completed])
    try await mock.waitUntilSleeping()
    #expect(manager.service.statusText.hasPrefix("foreground since"))
    // Once is enough.
    #expect(outcomes(try await mock.send(signal)) == [nil, nil])
    let end = try await mock.send(.sigterm)
    try await task.value
    #expect(log.all == ["polls"] && end.problems.isEmpty && mock.exitResult?.exitStatus == 0)
  }

  /// Nobody sends a second SIGUSR2. Until it has worked the daemon is not ready, which the log says once.
  @Test func whatFailedIsTriedAgain() async throws {
    let (manager, database) = (try FakeServiceManager(), Database(isUp: true))
    let (mock, task) = try await held(database, manager)
    try await expectRetries(of: database, after: [1, 2, 4, 8, 16, 32, 60, 60], mock)
    #expect(manager.service.statusText.hasPrefix("foreground without Database, polling since"))
    database.isUp.withLock { $0 = true }
    await mock.advance(by: .seconds(60))
    try await mock.waitUntilSleeping()
    #expect(log.all == ["polls"] && mock.core.state.withLock { $0.machine.isReady })
    #expect(manager.service.statusText.hasPrefix("foreground since"))
    #expect(!manager.service.statusText.contains("failed"))
    try await mock.send(.sigterm)
    try await task.value
  }

  /// Its time may come while a transition is under way, and while the machine is about to sleep, which it then does not.
  @Test(arguments: [false, true]) func itIsTriedAfterWhatIsUnderWay(isSuspend: Bool) async throws {
    let (manager, database) = (try FakeServiceManager(), Database(isUp: true))
    let (mock, task) = try await held(database, manager)
    mock.on(ShouldSaveState.self) { [clock = mock.clock] _ in
      try await clock.sleep(for: .seconds(2))
    }
    try await mock.waitUntilSettled()
    let tries = database.tries.withLock { $0 }
    mock.inject(isSuspend ? .saveState : .reload)
    try await mock.waitUntilSleeping()
    if isSuspend { mock.inject(.sleep) }
    await mock.advance(by: .milliseconds(1500))
    if isSuspend { mock.inject(.wakeUp) }
    await mock.advance(by: .milliseconds(500))
    try await mock.waitUntilSettled()
    // A reload itself tries again, too.
    #expect(database.tries.withLock { $0 } == tries + (isSuspend ? 1 : 2))
    // After the first try comes a longer pause.
    try await expectRetries(of: database, after: [2], mock)
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(2))
    try await mock.waitUntilSettled()
    try await task.value
  }

  /// Also where nothing waits for it. When it has worked, the pauses begin again.
  @Test func oneAloneIsTriedLessAndLessOften() async throws {
    let mock = MockLifecycleSubject(state: .background)
    let database = Database(isUp: false)
    mock.addObserver(database)
    try await mock.send(.resume)
    try await expectRetries(of: database, after: [1, 2, 4, 8], mock)
    database.isUp.withLock { $0 = true }
    await mock.advance(by: .seconds(16))
    try await mock.waitUntilSettled()
    #expect(mock.core.state.withLock { $0.machine.isReady })
    try await mock.send(.sigusr1)
    database.isUp.withLock { $0 = false }
    try await mock.send(.sigusr2)
    try await expectRetries(of: database, after: [1, 2, 4], mock)
  }

  /// What comes after it on the way up, or was removed, is nothing that it needs.
  @Test(arguments: [true, false]) func otherHooksHoldNothingBack(isRemoved: Bool) async throws {
    let mock = MockLifecycleSubject(state: .background)
    let database = Database(isUp: false)
    mock.addObserver(database)
    try await mock.send(.resume)
    if isRemoved { mock.removeObserver(database) }
    let task = poll(mock, phase: LifecyclePhase(order: isRemoved ? 0 : -1))
    try await mock.waitUntilSleeping()
    try await mock.send(.sigterm)
    try await task.value
  }

  /// Its hook may still bring it into the foreground.
  @Test func aHookThatHangsIsNotCalledAgain() async throws {
    let mock = MockLifecycleSubject(state: .background)
    let gate = Gate()
    mock.addObserver(
      Scripted(foreground: { _ in
        log.add("enters")
        await gate.wait()
      }), name: "Database")
    let task = poll(mock)
    try await eventually { mock.core.state.withLock { $0.machine.works.all.count } == 1 }
    mock.inject(.resume)
    await mock.advance(by: .seconds(11))
    try await mock.waitUntilSettled()
    #expect(outcomes(try await mock.send(.sigusr2)) == [nil, .skipped(.earlierHookFailed)])
    #expect(mock.core.state.withLock { !$0.machine.isReady })
    // It has entered late, and what was held back begins without another signal.
    gate.open()
    try await eventually { log.all == ["enters", "polls"] }
    // The body begins before the hook that has begun it returns.
    try await eventually { mock.core.state.withLock { $0.machine.isReady } }
    try await mock.send(.sigterm)
    try await task.value
  }
}
