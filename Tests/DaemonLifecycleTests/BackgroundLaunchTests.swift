// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import TestSupport
import Testing

@testable import DaemonLifecycle

/// A reason that is given before the launch: the daemon launches in the background, as a hot standby does.
@Suite struct BackgroundLaunchTests {
  private let mock = MockLifecycleSubject(state: .launching)
  private let unit = BackgroundReason("standby-a.target")
  private let log = Log()

  @Test func theLaunchEndsInTheBackground() async throws {
    mock.addObserver(Listener("a", log))
    mock.pause(for: unit)
    let report = try await mock.launch()
    #expect(report.problems.isEmpty)
    #expect(log.all == ["a launch"])
    #expect(mock.state == .background)
    try mock.checkNothingPending()
  }

  /// As `UnitFollower` reports it: the reason that it takes back is the one that was given.
  @Test func theUnitBringsItToTheForeground() async throws {
    mock.addObserver(Listener("a", log))
    mock.pause(for: unit)
    try await mock.launch()
    try await mock.send(.sigusr2)
    #expect(mock.state == .background, "an operator's resume takes back no reason of a unit's")
    try await mock.send(.resume(for: unit))
    #expect(mock.state == .foreground)
    try await mock.send(.pause(for: unit))
    #expect(log.all == ["a launch", "a foreground", "a background", "a save"])
  }

  @Test func withoutAReasonLeftItLaunchesInTheForeground() async throws {
    mock.pause(for: unit)
    mock.resume(for: unit)
    try await mock.launch()
    #expect(mock.state == .foreground)
  }
}
