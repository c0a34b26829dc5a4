// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import DaemonSystemd
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// `foreground { … }`: rounds that begin and end with the foreground and never overlap.
@Suite struct ForegroundTests {
  private let log = Log()

  /// Runs `body` in the mock's foreground until the task ends, and says in the log how that was.
  private func run(
    _ mock: MockLifecycleSubject, _ body: @escaping @Sendable () async throws -> Void
  ) -> Task<Void, Never> {
    mock.core.endSetUp()
    return Task {
      do {
        try await mock.foreground { try await body() }
        log.add("returned")
      } catch { log.add("threw \(type(of: error))") }
    }
  }

  @Test func aBodyThatReturnsRunsAgainWithTheNextForeground() async throws {
    let mock = MockLifecycleSubject()
    let task = run(mock) { log.add("round") }
    try await eventually { !log.all.isEmpty }
    try await mock.send(.sigusr1)
    try await mock.send(.sigusr2)
    try await eventually { log.all.count >= 2 }
    try await mock.send(.sigterm)
    await task.value
    #expect(log.all == ["round", "round", "returned"])
  }

  enum Kind: CaseIterable { case plain, draining, restarting }

  /// As the network libraries' bodies do, which throw an error of their own when they are cancelled.
  @Test(arguments: Kind.allCases) func anErrorAtCancellationIsAnEntryAndNoMore(kind: Kind)
    async throws
  {
    let mock = MockLifecycleSubject()
    let body = { @Sendable () async throws in
      log.add("begins")
      do { try await mock.clock.sleep(for: .seconds(1000)) } catch { throw Failure() }
    }
    let task = Task {
      switch kind {
      case .plain: try await mock.foreground(name: "body", body)
      case .draining:
        try await mock.foreground(name: "body", draining: .seconds(20)) { round in
          _ = try await round.untilEnding(body)
          throw Failure()
        }
      case .restarting:
        try await mock.foreground(name: "body", restarting: .backoff(maximumFailures: 0), body)
      }
      log.add("returned")
    }
    for _ in 0..<2 {
      try await mock.waitUntilSleeping()
      let report = try await mock.send(.sigusr1)
      #expect(report["body", DidEnterBackground.self]?.outcome == .failed(Failure()))
      #expect(report.problems.count == 1)
      try await mock.send(.sigusr2)
    }
    try await mock.waitUntilSleeping()
    try await mock.send(.sigterm)
    try await task.value
    #expect(log.all == ["begins", "begins", "begins", "returned"])
    let exit = try #require(mock.exitResult)
    #expect(exit.exitStatus == 0 && exit.report.problems.map(\.observer) == ["body"])
    #expect(exit.report.timeline.contains("threw: Failure()"))
    #expect(!exit.report.timeline.contains("!"))
  }

  @Test func aCancelledCallerIsThrownTheBodysError() async throws {
    let mock = MockLifecycleSubject()
    let task = run(mock) {
      do { try await mock.clock.sleep(for: .seconds(1000)) } catch { throw Failure() }
    }
    try await mock.waitUntilSleeping()
    task.cancel()
    await task.value
    #expect(log.all == ["threw Failure"])
  }

  @Test func roundsNeverOverlap() async throws {
    let mock = MockLifecycleSubject()
    let gate = Gate()
    let first = Mutex(true)
    let task = run(mock) {
      let isFirst = first.withLock { isFirst in
        defer { isFirst = false }
        return isFirst
      }
      log.add("begins")
      defer { log.add("ends") }
      if isFirst { await gate.wait() } else { try await mock.clock.sleep(for: .seconds(1000)) }
    }
    try await eventually { !log.all.isEmpty }
    // The body ignores the pause: it is overdue.
    mock.inject(.sigusr1)
    await mock.advance(by: .seconds(11))
    let paused = try await mock.waitUntilSettled()
    #expect(paused.problems.count == 1)
    mock.inject(.sigusr2)
    await mock.advance(by: .seconds(1))
    #expect(log.all == ["begins"])
    gate.open()
    try await mock.waitUntilSettled()
    try await mock.waitUntilSleeping()
    #expect(log.all == ["begins", "ends", "begins"])
    try await mock.send(.sigterm)
    await task.value
    #expect(log.all == ["begins", "ends", "begins", "ends", "returned"])
  }

  @Test func ticksComeOnTheMocksClock() async throws {
    let mock = MockLifecycleSubject()
    let task = run(mock) {
      for try await tick in mock.ticks(every: .seconds(1)) { log.add("\(tick)") }
    }
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(3))
    #expect(log.all == ["0", "1", "2", "3"])
    try await mock.send(.sigterm)
    await task.value
    #expect(log.all.last == "returned")
  }

  /// A fleet does not poll in the same second; the rate is that of each daemon.
  @Test func ticksAreSpread() async throws {
    func firstTicks(seed: UInt64) async throws -> [Duration] {
      let (mock, log) = (MockLifecycleSubject(seed: seed), Log())
      let start = mock.clock.now
      mock.addForeground {
        for try await _ in mock.ticks(every: .seconds(10), spread: .seconds(10)) {
          log.add("\(start.duration(to: mock.clock.now).saturatedNanoseconds)")
        }
      }
      try await mock.waitUntilInForeground()
      try await mock.waitUntilSleeping()
      #expect(log.all.isEmpty)
      await mock.advance(by: .seconds(20))
      return log.all.compactMap { Int64($0) }.map { .nanoseconds($0) }
    }
    let times = try await firstTicks(seed: 1)
    #expect(times.count == 2 && times[0] < .seconds(10) && times[1] - times[0] == .seconds(10))
    #expect(try await firstTicks(seed: 1) == times)
    #expect(try await firstTicks(seed: 2) != times)
  }

  /// Not before the new round sleeps: until then the clock would move past it.
  @Test func theClockWaitsForARoundThatAResumeHasBegun() async throws {
    let mock = MockLifecycleSubject()
    let task = run(mock) {
      for try await tick in mock.ticks(every: .seconds(1)) {
        try await Task.sleep(for: .milliseconds(15))
        log.add("\(tick)")
      }
    }
    try await mock.waitUntilSleeping()
    mock.inject(.sigusr1)
    mock.inject(.sigusr2)
    await mock.advance(by: .seconds(2))
    #expect(log.all == ["0", "0", "1", "2"])
    try await mock.send(.sigterm)
    await task.value
  }
}
