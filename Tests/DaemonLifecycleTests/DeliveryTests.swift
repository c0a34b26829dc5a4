// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Order, phases and holds, on the mock's clock.
@Suite struct DeliveryTests {
  let log = Log()

  // MARK: Order

  @Test func anOperatorsPauseOutlastsASuspend() async throws {
    let mock = MockLifecycleSubject()
    mock.addObserver(Listener("a", log))
    try await mock.send(.sigusr1)
    try await mock.send(.sleep)
    try await mock.send(.wakeUp)
    #expect(mock.state == .background)
    try await mock.send(.sigusr2)
    #expect(mock.state == .foreground)
    #expect(
      log.all.map { $0.dropFirst(2) } == [
        "launch", "foreground", "background", "save", "save", "suspend", "resume", "foreground",
      ])
  }

  /// As a hot standby launches in the background. `UnitFollower` takes back the reason that it has given.
  @Test func aReasonBeforeTheLaunchHoldsTheForegroundBack() async throws {
    let mock = MockLifecycleSubject(state: .launching)
    let unit = BackgroundReason("standby-a.target")
    mock.addObserver(Listener("a", log))
    mock.pause(for: unit)
    #expect(try await mock.launch().problems.isEmpty)
    try await mock.send(.sigusr2)
    #expect(mock.state == .background, "an operator's resume takes back no reason of a unit's")
    try await mock.send(.resume(for: unit))
    #expect(mock.state == .foreground)
    try await mock.send(.pause(for: unit))
    #expect(log.all == ["a launch", "a foreground", "a background", "a save"])
  }

  // MARK: Holding

  @Test func whatIsHeldIsDeliveredInOrder() async throws {
    let mock = MockLifecycleSubject()
    mock.addObserver(Listener("a", log))
    try await mock.waitUntilSettled()
    log.clear()
    let (outer, inner) = (mock.holdDeliveries(), mock.holdDeliveries())
    mock.inject(.sighup)
    mock.inject(.sigusr1)
    outer.cancel()
    outer.cancel()  // idempotent: the other hold stands
    #expect(throws: MockLifecycleSubject.PendingError.self) { try mock.checkNothingPending() }
    #expect(log.all.isEmpty)
    inner.cancel()
    try await mock.waitUntilSettled()
    #expect(log.all == ["a save", "a reload", "a background", "a save"])
  }
}
