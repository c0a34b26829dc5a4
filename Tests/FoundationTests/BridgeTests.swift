// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleFoundation
import DaemonLifecycleTesting
import Foundation
import TestSupport
import Testing

@Suite struct BridgeTests {
  let center = NotificationCenter()

  /// An observer of every name and one bridge: all but the health check, each once, in order and under its name.
  @Test func postsWhatIsDeliveredUnderItsName() async throws {
    let mock = MockLifecycleSubject(state: .launching)
    let notes = Log()
    center.note(nil) { notification in
      #expect(notification.userInfo == nil)
      #expect(LifecycleContext.current?.isCurrent == true)
      let found = notification.object.map { "\(type(of: $0))" } ?? "none"
      #expect(notification.name.rawValue == "Daemon\(found)Notification")
      notes.add(found)
    }
    let bridge = mock.bridge(to: center)
    try await mock.launch()
    for signal in [UnixSignal.sigusr1, .sigusr2, .sighup] { try await mock.send(signal) }
    for event in [.sleep, .wakeUp, .pressure, .checkHealth]
      as [LifecycleRequest]
    { try await mock.send(event) }
    try await mock.send(.sigterm)
    let delivered = mock.delivered.filter { !($0 is CheckHealth) }.map { "\(type(of: $0))" }
    #expect(notes.all == delivered)
    #expect(Set(notes.all).count == 9)
    #expect(mock.reports.flatMap(\.problems).isEmpty)
    withExtendedLifetime(bridge) {}
  }

  @Test func postsAfterEveryHookOfTheLifecycle() async throws {
    let mock = MockLifecycleSubject(state: .launching)
    let notes = Log()
    let bridge = mock.bridge(to: center)
    let low = Listener("low", notes)
    let high = Listener("high", notes)
    mock.addObserver(high, phase: LifecyclePhase(order: 1_000_000, isConcurrent: true))
    mock.addObserver(low, phase: LifecyclePhase(order: -1_000_000))
    center.note(.daemon(DidEnterBackground.self)) { _ in notes.add("center background") }
    center.note(.daemon(ShouldSaveState.self)) { _ in notes.add("center save") }
    center.note(.daemon(WillEnterForeground.self)) { _ in notes.add("center foreground") }
    try await mock.launch()
    let pause = try await mock.send(.sigusr1)
    #expect(pause.entries.last?.observer == "NotificationsOnTheWayDown")
    #expect(
      notes.all == [
        "low launch", "high launch", "low foreground", "high foreground", "center foreground",
        "high background", "low background", "center background",
        "high save", "low save", "center save",
      ])
    withExtendedLifetime((bridge, low, high)) {}
  }

  @Test func aLateBridgePostsWhatLateObserversReceiveUntilItsTokenIsGone() async throws {
    let mock = MockLifecycleSubject()
    let notes = Log()
    center.note(nil) { notes.add($0.name.rawValue) }
    var bridge: LifecycleToken? = mock.bridge(to: center)
    try await mock.waitUntilSettled()
    let late = ["DaemonDidFinishLaunchingNotification", "DaemonWillEnterForegroundNotification"]
    #expect(notes.all == late)
    _ = bridge
    bridge = nil
    try await mock.send(.sigusr1)
    #expect(notes.all == late)
  }

  @Test func aSubjectPostsOnItsOwnThreads() async throws {
    let subject = LifecycleSubject(
      configuration: LifecycleConfiguration(
        signals: [:], exitGrace: nil, logging: .off, interfaces: .plain))
    let notes = Log()
    center.note(nil) { notes.add("\($0.name.rawValue) on \(threadName())") }
    let bridge = subject.bridge(to: center)
    let launches = subject.reports()
    Task {
      for await _ in launches { break }
      #expect(notes.all.count == 2)
      subject.terminate()
    }
    let exit = try await subject.run()
    #expect(exit.exitStatus == 0 && exit.error == nil)
    #expect(
      notes.all
        == [
          "DidFinishLaunching", "WillEnterForeground", "DidEnterBackground", "ShouldSaveState",
          "WillTerminate",
        ].map { "Daemon\($0)Notification on lifecycle" })
    withExtendedLifetime(bridge) {}
  }
}
