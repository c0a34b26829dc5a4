// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleFiles
import DaemonLifecycleTesting
import TestSupport
import Testing

/// Not ready at once, serving on for a while, then the end.
@Suite("Drain", .timeLimit(.minutes(5))) struct DrainTests {
  private let folder: Folder
  private let log = Log()
  private var isReady: Bool { exists(folder.path("ready")) }

  init() throws { folder = try Folder() }

  private func mock(
    _ state: LifecycleState = .foreground, serviceManager: FakeServiceManager? = nil
  ) -> MockLifecycleSubject {
    MockLifecycleSubject(
      state: state,
      configuration: .init(
        stopDelay: .seconds(5), logging: .off,
        interfaces: .standard + [.readinessFile(folder.path("ready"))]),
      serviceManager: serviceManager)
  }

  /// One that has a listener, which has logged its launch.
  private func listened(_ mock: MockLifecycleSubject) async throws -> MockLifecycleSubject {
    mock.addObserver(Listener("it", log))
    try await mock.waitUntilSettled()
    log.clear()
    return mock
  }

  private static let down = ["it background", "it save", "it terminate"]

  // MARK: The delay

  @Test func servesOnAndThenEnds() async throws {
    let mock = try await listened(mock())
    #expect(isReady)
    mock.inject(.sigterm)
    #expect(!isReady, "at once")
    await mock.advance(by: .milliseconds(4999))
    #expect(mock.state == .foreground && log.all == [] && mock.exitResult == nil)
    #expect(throws: MockLifecycleSubject.PendingError.self) { try mock.checkNothingPending() }
    await mock.advance(by: .milliseconds(1))
    try await mock.waitUntilSettled()
    #expect(log.all == Self.down)
    #expect(mock.exitResult?.exitStatus == 0 && mock.exitResult?.report.cause.signal == .sigterm)
    try mock.checkNothingPending()
  }

  @Test func allElseGoesOnMeanwhile() async throws {
    struct ProgressUpdate: CustomNotification {}
    let mock = try await listened(mock())
    mock.on(ProgressUpdate.self) { [log] _ in log.add("news") }
    try await mock.waitUntilSettled()
    mock.inject(.sigterm)
    try await mock.send(.sighup)
    let report = await mock.post(ProgressUpdate())
    #expect(report.problems.isEmpty)
    try await mock.send(.checkHealth)
    try await mock.send(.sigusr2)
    #expect(log.all == ["it save", "it reload", "news"] && mock.exitResult == nil && !isReady)
    await mock.advance(by: .seconds(5))
    try await mock.waitUntilSettled()
    #expect(log.all.suffix(3) == Self.down)
  }

  /// The first request counts, but not for the status: a component has failed.
  @Test func aStatusThatIsGivenMeanwhileCounts() async throws {
    let mock = try await listened(mock())
    mock.inject(.sigterm)
    mock.terminate(because: "the disk is full", exitStatus: 74)
    mock.terminate()
    await mock.advance(by: .seconds(5))
    try await mock.waitUntilSettled()
    #expect(mock.exitResult?.exitStatus == 74 && mock.exitResult?.report.cause.signal == .sigterm)
  }

  // MARK: What ends it early

  @Test func aSecondSignalEndsItAndHurriesNobody() async throws {
    let mock = try await listened(mock())
    mock.on(DidEnterBackground.self) { [log, clock = mock.clock] _ in
      try await clock.sleep(for: .seconds(3))
      log.add("slow")
    }
    try await mock.waitUntilSettled()
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(1))
    mock.inject(.sigint)
    await mock.advance(by: .seconds(3))
    try await mock.waitUntilSettled()
    #expect(log.all == ["slow"] + Self.down)
    #expect(mock.exitResult?.exitStatus == 0 && mock.exitResult?.report.cause.signal == .sigterm)
  }

  @Test func aCallDrainsToo() async throws {
    let mock = try await listened(mock())
    mock.terminate()
    mock.terminate()
    await mock.advance(by: .seconds(4))
    #expect(!isReady && log.all == [])
    mock.inject(.sigterm)
    try await mock.waitUntilSettled()
    #expect(log.all == Self.down && mock.exitResult?.exitStatus == 0)
  }

  @Test(arguments: [LifecycleRequest.pause(for: .operator), .sleep])
  func whatEndsTheServingEndsTheDelay(kind: LifecycleRequest) async throws {
    let mock = try await listened(mock())
    mock.inject(.sigterm)
    mock.inject(kind)
    try await mock.waitUntilSettled()
    #expect(log.all == Self.down && mock.exitResult?.report.cause.signal == .sigterm)
  }

  // MARK: When there is none

  @Test func aDaemonInTheBackgroundEndsAtOnce() async throws {
    let mock = try await listened(mock(.background))
    try await mock.send(.sigterm)
    #expect(mock.exitResult?.exitStatus == 0)
  }

  @Test func soDoesOneThatIsAboutToPause() async throws {
    let mock = mock()
    let gate = Gate()
    mock.on(ShouldReload.self) { _ in await gate.wait() }
    try await mock.waitUntilSettled()
    mock.inject(.sighup)
    await mock.advance(by: .zero)
    mock.inject(.sigusr1)
    mock.inject(.sigterm)
    gate.open()
    try await mock.waitUntilSettled()
    #expect(mock.exitResult?.exitStatus == 0)
  }

  // MARK: systemd

  @Test func systemdIsToldAtOnce() async throws {
    let manager = try FakeServiceManager()
    let mock = mock(serviceManager: manager)
    mock.inject(.sigterm, fromPID: 1, uid: 0)
    let stopping = try await manager.next { $0["STOPPING"] == "1" }
    #expect(
      stopping["STATUS"] == "draining for 5 s, then stopping: SIGTERM from pid 1 uid 0")
    try await mock.send(.sighup)
    await mock.advance(by: .seconds(5))
    _ = try await manager.next {
      $0["STATUS"]?.hasPrefix("stopping: SIGTERM from pid 1 uid 0") == true
    }
    _ = try await manager.next(containing: "EXIT_STATUS")
    #expect(manager.messages.filter { $0["STOPPING"] != nil }.count == 1)
    #expect(manager.messages.filter { $0["RELOADING"] != nil }.isEmpty)
    #expect(manager.violations == [])
  }
}
