// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import DaemonSystemd
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Durations that make no sense: they saturate, and none of them ends the process.
@Suite("Extreme durations", .timeLimit(.minutes(5))) struct DurationTests {
  private static let extremes: [Duration] = [
    .seconds(Int64.min), .nanoseconds(-1), .zero, .seconds(Int64.max),
  ]
  private typealias Setting = @Sendable (inout LifecycleConfiguration, Duration) -> Void
  private static let settings: [Setting] = [
    { $0.hookTimeout = $1 }, { $0.cancellationGrace = $1 }, { $0.stopTimeout = $1 },
    { $0.saveReserve = $1 }, { $0.exitGrace = $1 }, { $0.escalationDelay = $1 },
    { $0.stopDelay = $1 },
    {
      $0.hookTimeout = $1
      $0.cancellationGrace = $1
      $0.stopTimeout = $1
      $0.saveReserve = $1
      $0.exitGrace = $1
      $0.stopDelay = $1
    },
  ]

  @Test(arguments: extremes) func aDaemonEndsWithAnySetting(_ extreme: Duration) async throws {
    for (index, setting) in Self.settings.enumerated() {
      var configuration = LifecycleConfiguration(logging: .off)
      setting(&configuration, extreme)
      _ = LifecycleWiring(configuration).problems
      let mock = MockLifecycleSubject(configuration: configuration)
      mock.on(DidEnterBackground.self) { [clock = mock.clock] _ in
        try await clock.sleep(for: .seconds(1))
      }
      mock.inject(.sigusr1)
      await mock.advance(by: .seconds(1))
      mock.inject(.sigterm)
      await mock.advance(by: .seconds(1000))
      #expect(mock.exitResult != nil, "setting \(index)")
    }
  }

  @Test(arguments: extremes) func aHookEndsWithAnyDeadline(_ extreme: Duration) async throws {
    let mock = MockLifecycleSubject()
    mock.on(DidEnterBackground.self, timeout: extreme) { _ in
      LifecycleContext.current?.extendDeadline(by: extreme)
    }
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(1000))
    #expect(mock.exitResult != nil)
  }

  /// Nor is the clock turned for ever.
  @Test(.timeLimit(.minutes(2)), arguments: extremes)
  func workEndsWithAnyTimes(_ extreme: Duration) async throws {
    for isReady in [true, false] {
      let mock = MockLifecycleSubject()
      mock.addForeground(
        name: "work", draining: extreme, readyWithin: isReady ? nil : min(extreme, .seconds(1)),
        stallsAfter: extreme
      ) { [clock = mock.clock] _ in try await clock.sleep(for: .seconds(1 << 40)) }
      mock.addTask(draining: extreme, restarting: .backoff(), stallsAfter: extreme) {
        [clock = mock.clock] _ in try await clock.sleep(for: .seconds(1 << 40))
      }
      await mock.advance(by: .seconds(10))
      mock.inject(.sigterm)
      await mock.advance(by: .seconds(1000))
      try await mock.waitUntilSettled()
      #expect(mock.exitResult != nil, "begins ready: \(isReady)")
    }
  }

  /// Neither their sum nor what one leaves of another is an overflow.
  @Test func manyAreNoMoreThanOne() async throws {
    let long = Duration.seconds(Int64.max)
    let mock = MockLifecycleSubject(
      configuration: LifecycleConfiguration(
        cancellationGrace: long, stopTimeout: long, saveReserve: long, logging: .off))
    for _ in 1...30 { mock.on(DidEnterBackground.self, timeout: long) { _ in } }
    try await mock.send(.sigterm).check()
    #expect(mock.exitResult?.exitStatus == 0)
  }

  /// It would lengthen what others limit, and so be a limit for nothing.
  @Test func whatIsNegativeCountsAsZeroAndIsSaid() {
    let configuration = LifecycleConfiguration(
      hookTimeout: .seconds(-1), cancellationGrace: .seconds(-2), stopTimeout: .seconds(9),
      saveReserve: .seconds(-100), exitGrace: .seconds(-100), escalationDelay: .seconds(-3),
      stopDelay: .seconds(-4))
    let policy = LifecycleMachine.Policy(configuration: configuration)
    let start = MonotonicTime(nanoseconds: 0)
    let budget = StopBudget(policy, allowed: nil, from: start)
    #expect(budget.end == start.advanced(by: .seconds(9)))
    #expect(budget.endBeforeSaves == budget.end)
    let problems = LifecycleWiring(configuration).problems
    #expect(
      problems.map { $0.prefix { $0 != " " } } == [
        "hookTimeout", "cancellationGrace", "saveReserve", "exitGrace", "escalationDelay",
        "stopDelay",
      ])
    #expect(problems[0] == "hookTimeout is negative (-1.0 seconds): it counts as zero.")
  }

  @Test(arguments: extremes) func aSleepATickAndARestart(_ extreme: Duration) async throws {
    let mock = MockLifecycleSubject()
    var ticks = mock.ticks(every: extreme).makeAsyncIterator()
    #expect(try await ticks.next() == 0)
    _ = mock.ticks(every: extreme, spread: extreme).makeAsyncIterator()
    let sleep = Task { try await mock.clock.sleep(for: extreme) }
    if extreme > .zero { try await mock.waitUntilSleeping() }
    sleep.cancel()
    _ = await sleep.result
    _ = await mock.unitJob(within: extreme)
    let policy = RestartPolicy.backoff(
      initialDelay: extreme, maximumDelay: extreme, within: extreme)
    var history = RestartHistory(policy)
    for _ in 1...3 { _ = history.failed(at: mock.clock.now.time, share: 0.75) }
  }
}
