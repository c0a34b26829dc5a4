// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import DaemonSystemd
import Testing

@testable import DaemonLifecycle

/// Timelines of real deliveries, on the mock's clock: exact to the millisecond.
@Suite("Timelines of a mock", .timeLimit(.minutes(5))) struct MockTimelineTests {
  /// Takes its time for each hook, on the clock.
  private final class Sleeper: BackgroundObserver, SaveObserver, ReloadObserver {
    let clock: LifecycleClock
    let pause: Duration
    let save: Duration
    init(_ mock: MockLifecycleSubject, pause: Duration = .zero, save: Duration = .zero) {
      clock = mock.clock
      self.pause = pause
      self.save = save
    }
    func didEnterBackground(_ notification: DidEnterBackground) async throws {
      try await sleep(pause)
    }
    func shouldSaveState(_ notification: ShouldSaveState) async throws { try await sleep(save) }
    func shouldReload(_ notification: ShouldReload) async throws { try await sleep(.seconds(3)) }
    private func sleep(_ time: Duration) async throws {
      if time > .zero { try await clock.sleep(for: time) }
    }
  }

  @Test func oneAfterAnother() async throws {
    let mock = MockLifecycleSubject()
    mock.addObserver(Sleeper(mock, pause: .milliseconds(40), save: .milliseconds(200)))
    mock.addObserver(Sleeper(mock, save: .milliseconds(60)))
    try await mock.waitUntilSettled()
    mock.inject(.sigterm)
    for time in [40, 60, 200] {
      try await mock.waitUntilSleeping()
      await mock.advance(by: .milliseconds(time))
    }
    try await mock.waitUntilSettled()
    let timeline = LifecycleTimeline(try #require(mock.exitResult?.report))
    #expect(
      timeline.description == """
        terminate (SIGTERM from pid 1 uid 0) in 300 ms of 90 s
          Sleeper 2  |   ####                60 ms  paused, saved
          Sleeper    |###    #############  240 ms  paused, saved (200 ms)
        """)
    #expect(mock.exitResult?.report.span?.budget == .seconds(90))
  }

  @Test func concurrentHooksLieSideBySide() async throws {
    let mock = MockLifecycleSubject()
    let phase = LifecyclePhase(order: 1, isConcurrent: true)
    for save in [100, 50] {
      mock.addObserver(Sleeper(mock, save: .milliseconds(save)), phase: phase)
    }
    try await mock.waitUntilSettled()
    mock.inject(.sigterm)
    try await mock.waitUntilSleeping(2)
    await mock.advance(by: .milliseconds(100))
    try await mock.waitUntilSettled()
    let report = try #require(mock.exitResult?.report)
    let timeline = LifecycleTimeline(report)
    #expect(timeline.duration == .milliseconds(100))
    #expect(Set(timeline.rows.map(\.duration)) == [.milliseconds(50), .milliseconds(100)])
    #expect(
      report.entries.allSatisfy { $0.began == report.span?.began || $0.duration == .zero })
  }

  @Test func theDrainIsPartOfIt() async throws {
    let mock = MockLifecycleSubject(
      configuration: LifecycleConfiguration(stopDelay: .seconds(5), logging: .off))
    mock.addObserver(Sleeper(mock, save: .seconds(5)))
    try await mock.waitUntilSettled()
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(5))
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(5))
    try await mock.waitUntilSettled()
    #expect(
      mock.exitResult?.report.timeline == """
        terminate (SIGTERM from pid 1 uid 0) in 10 s of 90 s
          (stopDelay)  |##########            5 s  served on
          Sleeper      |          ##########  5 s  paused, saved
        """)
  }

  @Test func whatItHasOvertakenHadToEndFirst() async throws {
    let mock = MockLifecycleSubject(state: .background)
    mock.addObserver(Sleeper(mock))
    try await mock.waitUntilSettled()
    mock.inject(.sighup)
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(1))
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(2))
    try await mock.waitUntilSettled()
    #expect(
      mock.exitResult?.report.timeline == """
        terminate (SIGTERM from pid 1 uid 0) in 2 s of 90 s
          (reload)  |####################   2 s  had to end first
          Sleeper   |                      0 ms  saved
        """)
  }

  @Test func aSecondSignalHurries() async throws {
    let mock = MockLifecycleSubject(
      configuration: LifecycleConfiguration(hookTimeout: .seconds(60), logging: .off))
    mock.addObserver(Sleeper(mock, pause: .seconds(50)))
    try await mock.waitUntilSettled()
    mock.inject(.sigterm)
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(2))
    mock.inject(.sigterm)
    try await mock.waitUntilSettled()
    #expect(
      mock.exitResult?.report.timeline == """
        terminate (SIGTERM from pid 1 uid 0) in 2 s of 14 s, hurried by a second signal, 1 of 2 hooks failed
        ! Sleeper  |xxxxxxxxxxxxxxxxxxxx  2 s  pause timed out, saved
        """)
  }
}
