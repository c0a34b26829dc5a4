// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleTesting
import DaemonSystemd
import TestSupport
import Testing

/// A mock tells a fake service manager what a daemon would tell systemd.
@Suite struct FakeServiceManagerMockTests {
  private let manager: FakeServiceManager
  private let mock: MockLifecycleSubject

  init() throws {
    manager = try FakeServiceManager()
    mock = MockLifecycleSubject(serviceManager: manager)
  }

  private func fields() -> [String] {
    manager.messages.flatMap(\.lines).filter {
      !$0.hasPrefix("STATUS=") && !$0.hasPrefix("MONOTONIC_USEC=")
    }
  }

  @Test func aLifeInMessages() async throws {
    manager.willRequestReload()
    try await mock.send(.sighup)
    try await mock.send(.checkHealth)
    try await mock.send(.sigterm)
    _ = try await manager.next(containing: "EXIT_STATUS")
    #expect(
      fields() == [
        "READY=1", "RELOADING=1", "READY=1", "WATCHDOG=1", "STOPPING=1",
        // No bus has said how long a stop may take: 90 s and a margin are asked for.
        "EXTEND_TIMEOUT_USEC=91000000", "EXIT_STATUS=0",
      ])
    #expect(manager.violations == [])
  }

  /// `RestartSteps=` begins anew.
  @Test func restartsAreForgottenAfterAMinuteOfHealth() async throws {
    try await mock.waitUntilSettled()
    await mock.advance(by: .seconds(59))
    #expect(!fields().contains("RESTART_RESET=1"))
    await mock.advance(by: .seconds(120))
    _ = try await manager.next(containing: "RESTART_RESET")
    #expect(fields().count { $0 == "RESTART_RESET=1" } == 1)
  }

  @Test func readyIsLastInALaunch() async throws {
    let manager = try FakeServiceManager()
    let mock = MockLifecycleSubject(state: .launching, serviceManager: manager)
    mock.inject(.sighup)
    try await mock.launch()
    _ = try await manager.next { $0["READY"] == "1" && $0["STATUS"]?.contains("reloaded") == true }
    #expect(manager.messages.first?["STATUS"] == "launching")
    #expect(manager.service.reloadsBegun == 1 && manager.service.reloadsEnded == 1)
    #expect(manager.violations == [], "a reload asked for while launching comes after READY")
  }

  /// It throws the error of its cancellation, which says nothing.
  @Test func aReloadThatTimesOutSaysSo() async throws {
    let settings = mock.observe(ShouldReload.self, name: "Settings") { [mock] _ in
      try await mock.clock.sleep(for: .seconds(100))
    }
    mock.inject(.reload)
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(10))
    _ = try await manager.next {
      $0["STATUS"]?.contains("Settings, ShouldReload: timed out after 10 s") == true
    }
    settings.cancel()
  }

  @Test func aSlowStopTellsHowFarItIs() async throws {
    let mock = mock
    let slow = Scripted(background: { _ in try await mock.clock.sleep(for: .milliseconds(2500)) })
    mock.addObserver(slow)
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(3))
    _ = try await manager.next { $0["STATUS"]?.hasPrefix("stopping: 0 of 3 done, waiting") == true }
    try await mock.waitUntilSettled()
    #expect(manager.violations == [])
  }

  // MARK: What is preserved

  /// What it stores is for the next, though it asks late.
  @Test func aMockIsPassedWhatWasThereWhenItBegan() throws {
    let first = MockLifecycleSubject(serviceManager: manager)
    let second = MockLifecycleSubject(serviceManager: manager)
    try first.preservation().preserve([1], named: "state")
    #expect(try second.preservation().preservedBytes(named: "state") == nil)
    #expect(
      try MockLifecycleSubject(serviceManager: manager).preservation().preservedBytes(
        named: "state")
        == [1])
  }

  @Test func withoutAManagerNothingIsKept() throws {
    let mock = MockLifecycleSubject()
    try mock.preservation().preserve([1], named: "state")
    #expect(try mock.preservation().names() == [])
  }

  /// As the log says, it is ignored.
  @Test func anAddressThatIsNoneMeansNoStore() throws {
    var configuration = LifecycleConfiguration()
    configuration.environment = ServiceEnvironment(["NOTIFY_SOCKET": "7", "FDSTORE": "4"])
    let preservation = try LifecycleSubject(configuration: configuration).preservation()
    try preservation.preserve([1], named: "state")
    #expect(preservation.limit == 0)
  }

  /// Nothing of the environment is looked at by one that is to use nothing of systemd.
  @Test func aSubjectThatIsOffHasNoStore() throws {
    let sent = manager.messages
    var configuration = LifecycleConfiguration(interfaces: .plain)
    configuration.environment = ServiceEnvironment(manager.environment)
    let preservation = try LifecycleSubject(configuration: configuration).preservation()
    try preservation.preserve([1], named: "state")
    #expect(preservation.limit == 0 && manager.messages == sent)
  }
}
