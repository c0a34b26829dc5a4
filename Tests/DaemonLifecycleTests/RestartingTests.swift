// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import DaemonSystemd
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// `foreground(restarting:)`: a part that fails is run again, and the others go on.
@Suite(.timeLimit(.minutes(5))) struct RestartingTests {
  private let log = Log()

  private func at(_ seconds: Double) -> MonotonicTime {
    MonotonicTime(nanoseconds: Int64(seconds * 1e9))
  }

  // MARK: The schedule

  @Test func delaysDoubleUpToTheLongest() {
    var history = RestartHistory(
      .backoff(
        initialDelay: .seconds(1), maximumDelay: .seconds(5), maximumFailures: 5,
        within: .seconds(60))
    )
    let delays = (1...6).map { history.failed(at: at(Double($0)), share: 1)?.delay }
    #expect(delays == [.seconds(1), .seconds(2), .seconds(4), .seconds(5), .seconds(5), nil])
  }

  /// What fails at once would keep a processor busy.
  @Test(arguments: [(Duration.zero, Duration.seconds(1)), (.seconds(1), .seconds(-1))])
  func thereIsAlwaysAPause(initial: Duration, maximum: Duration) {
    var history = RestartHistory(
      .backoff(initialDelay: initial, maximumDelay: maximum, maximumFailures: nil))
    for number in 1...3 {
      let next = history.failed(at: at(Double(number)), share: 1)
      #expect(next?.delay ?? .zero >= .milliseconds(10))
    }
  }

  @Test func aFailureOlderThanThePeriodDoesNotCount() {
    var history = RestartHistory(.backoff(maximumFailures: 2, within: .seconds(10)))
    #expect(history.failed(at: at(0), share: 1)?.number == 1)
    #expect(history.failed(at: at(5), share: 1)?.number == 2)
    #expect(history.failed(at: at(10), share: 1)?.number == 2)
    #expect(history.failed(at: at(11), share: 1) == nil)
  }

  /// A restart of a database, during which connections are refused at once. What fails for good does end.
  @Test(arguments: [0.5, 1]) func theDefaultOutlivesHalfAMinute(share: Double) {
    var history = RestartHistory(.backoff())
    var time = 0.0
    while time < 150, let (delay, _) = history.failed(at: at(time), share: share) {
      #expect(delay <= .seconds(10), "it is back soon")
      time += delay / .seconds(1)
    }
    #expect(time > 40 && time < 100)
  }

  @Test func aLargeNumberIsKeptToToo() {
    var history = RestartHistory(.backoff(maximumFailures: 2000))
    for number in 1...2000 { #expect(history.failed(at: at(1), share: 1)?.number == number) }
    #expect(history.failed(at: at(1), share: 1) == nil)
  }

  @Test func aShareOfTheDelayIsWaitedFor() {
    var history = RestartHistory(.backoff(initialDelay: .seconds(2)))
    #expect(history.failed(at: at(0), share: 0.5)?.delay == .seconds(1))
  }

  // MARK: In a daemon

  /// It is not run again, so it will never have run for the whole period.
  @Test func workThatIsDoneHasNotFailed() async throws {
    let manager = try FakeServiceManager()
    let mock = MockLifecycleSubject(serviceManager: manager)
    mock.addForeground(
      name: "import", restarting: .backoff(initialDelay: .seconds(1)), mayReturn: true
    ) { [log] in
      log.add("import")
      if log.all.count == 1 { throw Failure() }
    }
    try await mock.waitUntilSleeping()
    #expect(manager.service.statusText.contains("import has failed once"))
    await mock.advance(by: .seconds(1))
    try await eventually { !manager.service.statusText.contains("import") }
    #expect(manager.service.statusText.hasPrefix("foreground since"))
  }

  /// Nobody runs it any more.
  @Test func whoseCallerIsCancelledHasNotFailed() async throws {
    let (manager, _, task) = try await restarted()
    task.cancel()
    await task.value
    try await eventually { !manager.service.statusText.contains("part") }
  }

  private static let policy = RestartPolicy.backoff(
    initialDelay: .seconds(1), maximumDelay: .seconds(8), maximumFailures: 3, within: .seconds(60))

  private func run(
    _ mock: MockLifecycleSubject, _ body: @escaping @Sendable (Int) async throws -> Void
  ) -> Task<Void, Never> {
    let count = Mutex(0)
    return Task {
      do {
        try await mock.foreground(name: "part", restarting: Self.policy) {
          let number = count.withLock { count in
            count += 1
            return count
          }
          log.add("run \(number)")
          try await body(number)
        }
        log.add("returned")
      } catch { log.add("threw \(type(of: error))") }
    }
  }

  @Test func itIsRunAgainAfterEachDelayAndThenGivenUp() async throws {
    let mock = MockLifecycleSubject()
    let task = run(mock) { _ in throw Failure() }
    for (delay, runs) in [(1, 1), (2, 2), (4, 3)] {
      try await mock.waitUntilSleeping()
      #expect(log.all.count == runs)
      await mock.advance(by: .seconds(delay) - .milliseconds(1))
      #expect(log.all.count == runs)
      await mock.advance(by: .milliseconds(1))
    }
    await task.value
    #expect(log.all == ["run 1", "run 2", "run 3", "run 4", "threw Failure"])
  }

  /// A part that has failed at once, as its service manager has been told, and runs again since the first second.
  private func restarted(
    failingAfter time: Duration = .seconds(1000)
  ) async throws -> (FakeServiceManager, MockLifecycleSubject, Task<Void, Never>) {
    let manager = try FakeServiceManager()
    let mock = MockLifecycleSubject(serviceManager: manager)
    let task = run(mock) { number in
      if number > 1 { try await mock.clock.sleep(for: time) }
      throw Failure()
    }
    try await mock.waitUntilSleeping()
    _ = try await manager.next {
      $0["STATUS"]?.contains("part has failed once: Failure()") == true
    }
    await mock.advance(by: .seconds(1))
    try await mock.waitUntilSleeping()
    return (manager, mock, task)
  }

  /// It does not run in a pause: afterwards it has to run well for the period, however long the pause was.
  @Test(arguments: [false, true])
  func onceItHasBeenWellTheServiceManagerForgetsRestarts(afterAPause: Bool) async throws {
    let (manager, mock, task) = try await restarted()
    if afterAPause {
      try await mock.send(.sigusr1)
      await mock.advance(by: .seconds(120))
      try await mock.send(.sigusr2)
      try await mock.waitUntilSleeping()
    }
    await mock.advance(by: .seconds(60))
    try await eventually { manager.messages.contains { "\($0)".contains("RESTART_RESET") } }
    try await eventually { !manager.service.statusText.contains("has failed") }
    try await mock.send(.sigterm)
    await task.value
    #expect(manager.violations == [])
  }

  /// What it reported as well while it is down would have its restarts forgotten.
  @Test func aFailureShortlyBeforeThePeriodEndsIsNoRecovery() async throws {
    let (manager, mock, task) = try await restarted(failingAfter: .seconds(59.5))
    await mock.advance(by: .seconds(59.5))
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(0.9))
    #expect(log.all == ["run 1", "run 2"])
    try await mock.send(.sigterm)
    await task.value
    #expect(!manager.messages.contains { "\($0)".contains("RESTART_RESET") })
  }
}
