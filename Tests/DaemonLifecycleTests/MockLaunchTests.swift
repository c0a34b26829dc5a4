// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleTesting
import Synchronization
import TestSupport
import Testing

/// A mock of a daemon at work is launched like the daemon: before its test's first event.
@Suite(.timeLimit(.minutes(5))) struct MockLaunchTests {
  private let log = Log()
  private let mock = MockLifecycleSubject()

  @Test(arguments: [.launching, .background, .foreground, .terminated] as [LifecycleState])
  func itHasTheStateAtOnceAndLater(state: LifecycleState)
    async throws
  {
    let mock = MockLifecycleSubject(state: state)
    #expect(mock.state == state)
    try await mock.waitUntilSettled()
    #expect(mock.state == state && (mock.exitResult != nil) == (state == .terminated))
    if state == .terminated { for await _ in mock.reports() {} }
  }

  @Test func aTaskBeginsAfterIt() async throws {
    mock.on(DidFinishLaunching.self) { [log, clock = mock.clock] _ in
      try await clock.sleep(for: .seconds(1))
      log.add("launched")
    }
    mock.addTask(mayReturn: true) { [log] in log.add("task") }
    await mock.advance(by: .seconds(1))
    try await mock.waitUntilSettled()
    try await eventually { [log] in log.all == ["launched", "task"] }
  }

  @Test func oneThatFailsEndsTheDaemon() async throws {
    mock.on(DidFinishLaunching.self) { _ in throw Failure() }
    mock.addForeground(name: "work") { [log] in log.add("work") }
    mock.addTask { [log] in log.add("task") }
    await #expect(throws: MockLifecycleSubject.PendingError.self) {
      try await mock.waitUntilInForeground()
    }
    #expect(mock.exitResult?.exitStatus == 70 && log.all.isEmpty)
  }

  /// The hook that it holds back would release it.
  @Test func aHoldDoesNotHoldItBack() async throws {
    let hold = mock.holdDeliveries()
    mock.on(DidFinishLaunching.self) { _ in hold.cancel() }
    try await mock.send(.sigusr1).check()
    #expect(mock.state == .background)
  }

  @Test func whatIsAskedForDuringItKeepsItsOrder() async throws {
    struct Note: CustomNotification {}
    mock.on(DidFinishLaunching.self) { [clock = mock.clock] _ in
      try await clock.sleep(for: .seconds(1))
    }
    mock.on(DidEnterBackground.self) { [log] _ in log.add("pause") }
    mock.on(Note.self) { [log] _ in log.add("note") }
    mock.inject(.sigusr1)
    let post = Task { [mock] in await mock.post(Note()) }
    try await eventually { mock.calls.contains("post(Note())") }
    await mock.advance(by: .seconds(1))
    _ = await post.value
    #expect(log.all == ["pause", "note"])
  }

  /// Whatever it was that began the launch.
  @Test(arguments: [true, false]) func aPauseWaitsForItsEnd(isFirst: Bool) async throws {
    mock.on(DidFinishLaunching.self) { [clock = mock.clock] _ in
      try await clock.sleep(for: .seconds(1))
    }
    mock.on(WillEnterForeground.self) { [log] _ in log.add("foreground") }
    mock.on(DidEnterBackground.self) { [log] _ in log.add("pause") }
    if isFirst { mock.inject(.sigusr1) }
    try await mock.waitUntilSleeping()
    if !isFirst { mock.inject(.sigusr1) }
    await mock.advance(by: .seconds(1))
    try await mock.waitUntilSettled()
    #expect(log.all == ["foreground", "pause"])
  }

  /// As in a daemon.
  @Test func aHookMayEndIt() async throws {
    mock.on(DidFinishLaunching.self) { [mock] _ in mock.terminate(exitStatus: 3) }
    mock.on(WillEnterForeground.self) { [log] _ in log.add("foreground") }
    try await mock.waitUntilSettled()
    #expect(mock.exitResult?.exitStatus == 3 && log.all.isEmpty)
  }

  @Test func aClosedTerminalIsAStop() async throws {
    try await mock.send(.sighup, fromPID: 0, uid: 0)
    #expect(mock.exitResult?.exitStatus == 0)
  }
}
