// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleFoundation
import DaemonLifecycleTesting
import Foundation
import Synchronization
import TestSupport
import Testing

private struct CacheDropped: BridgedNotification, CustomNotification {
  static let name = Notification.Name("CacheDropped")
  let count: Int
  static func makeNotification(_ message: Self) -> Notification {
    // Its name and object are for the bridge to say.
    Notification(
      name: Notification.Name("wrong"), object: "wrong", userInfo: ["count": message.count])
  }
}

/// Its name is the one that Foundation gives to its messages.
private struct Misnamed: BridgedNotification, CustomNotification {
  static var name: Notification.Name { Notification.Name(_typeName(Misnamed.self)) }
}

private struct PlainlyBridged: BridgedNotification, CustomNotification {}

/// Notes what it hears.
private final class Listener: BackgroundObserver, StateObserver, ForegroundObserver {
  let notes: Notes<String>
  let name: String
  init(_ name: String, _ notes: Notes<String>) { (self.name, self.notes) = (name, notes) }
  func didEnterBackground(_ notification: DidEnterBackground) { notes.add("\(name) background") }
  func shouldSaveState(_ notification: ShouldSaveState) { notes.add("\(name) save") }
  func willEnterForeground(_ notification: WillEnterForeground) { notes.add("\(name) foreground") }
}

private let packageNames: [Notification.Name] = [
  .daemonDidFinishLaunching, .daemonWillEnterForeground, .daemonDidEnterBackground,
  .daemonShouldSaveState, .daemonShouldReload, .daemonWillSuspend, .daemonDidResume,
  .daemonDidReceivePressure, .daemonCheckHealth, .daemonWillTerminate,
]

@Suite struct BridgeTests {
  /// A whole life.
  private func live(_ mock: MockLifecycleSubject) async throws {
    try await mock.launch()
    try await mock.send(.sigusr1)
    try await mock.send(.sigusr2)
    try await mock.send(.sighup)
    try await mock.send(.suspend)
    try await mock.send(.wakeUp)
    try await mock.send(.pressure(.io))
    try await mock.send(.checkHealth)
    try await mock.send(.sigterm)
  }

  @Test func postsWhatIsDeliveredUnderItsName() async throws {
    let center = NotificationCenter()
    let mock = MockLifecycleSubject(state: .launching)
    let notes = Notes<String>()
    let removals = packageNames.map { name in
      center.note(name) { notification in
        #expect(notification.name == name)
        #expect(notification.userInfo == nil)
        notes.add(notification.object.map { "\(type(of: $0))" } ?? "none")
      }
    }
    let bridge = mock.bridge(to: center)
    try await live(mock)
    // All but the health check, each once and in order.
    let delivered = mock.delivered.filter { !($0 is CheckHealth) }.map { "\(type(of: $0))" }
    #expect(notes.all == delivered)
    #expect(Set(notes.all).count == packageNames.count - 1)
    #expect(mock.reports.flatMap(\.problems).isEmpty)
    withExtendedLifetime(bridge) { for remove in removals { remove() } }
  }

  @Test func typedValuesReachObserversOfTheirType() async throws {
    let center = NotificationCenter()
    let mock = MockLifecycleSubject()
    let other = MockLifecycleSubject()
    let notes = Notes<String>()
    let bridges = [mock.bridge(to: center), other.bridge(to: center)]
    let tokens = [
      center.addObserver(for: DidReceivePressure.self) { message in
        // The hook is over; the message must not look stale for that.
        #expect(message.context.isCurrent)
        notes.add("any \(message.resource) \(message.cause)")
      },
      center.addObserver(of: mock.core, for: DidReceivePressure.self) {
        notes.add("own \($0.resource)")
      },
      center.addObserver(of: other.core, for: DidReceivePressure.self) {
        notes.add("other \($0.resource)")
      },
    ]
    try await mock.send(.pressure(.memory))
    try await eventually { notes.all.count == 2 }
    try await other.send(.pressure(.cpu), cause: LifecycleCause(.pressure(.cpu)))
    try await eventually { notes.all.count == 4 }
    #expect(
      notes.all.sorted() == [
        "any cpu cpu pressure", "any memory a test", "other cpu", "own memory",
      ])
    withExtendedLifetime((bridges, tokens)) {}
  }

  @Test @MainActor func mainActorObserversAndSequencesHear() async throws {
    let center = NotificationCenter()
    let mock = MockLifecycleSubject()
    var heard: [String] = []
    let bridge = mock.bridge(to: center)
    let token = center.addObserver(for: DidEnterBackground.self) { @MainActor _ in
      MainActor.assertIsolated()
      heard.append("typed")
    }
    let foregrounds = Notes<UnixSignal?>()
    let sequence = Task {
      for await message in center.messages(for: WillEnterForeground.self) {
        foregrounds.add(message.cause.signal)
      }
    }
    try await mock.send(.sigusr1)
    try await eventually { heard == ["typed"] }
    // When it begins to observe nobody can see from outside: some time.
    while !foregrounds.all.contains(.sigusr2) {
      try await mock.send(.sigusr2)
      try await mock.send(.sigusr1)
      try await Task.sleep(for: .milliseconds(1))
    }
    sequence.cancel()
    withExtendedLifetime((bridge, token)) {}
  }

  @Test func hearsAfterEveryHookOfTheLifecycle() async throws {
    let center = NotificationCenter()
    let mock = MockLifecycleSubject(state: .launching)
    let notes = Notes<String>()
    let bridge = mock.bridge(to: center)
    let low = Listener("low", notes)
    let high = Listener("high", notes)
    mock.addObserver(high, phase: LifecyclePhase(order: 1_000_000, concurrent: true))
    mock.addObserver(low, phase: LifecyclePhase(order: -1_000_000))
    let removals = [
      center.note(.daemonDidEnterBackground) { _ in notes.add("center background") },
      center.note(.daemonShouldSaveState) { _ in notes.add("center save") },
      center.note(.daemonWillEnterForeground) { _ in notes.add("center foreground") },
    ]
    try await mock.launch()
    try await mock.send(.sigusr1)
    #expect(
      notes.all == [
        "low foreground", "high foreground", "center foreground",
        "high background", "low background", "center background",
        "high save", "low save", "center save",
      ])
    withExtendedLifetime((bridge, low, high)) { for remove in removals { remove() } }
  }

  @Test func namedObserversRunInTheHookOnAThreadOfTheLifecycle() async throws {
    let center = NotificationCenter()
    let mock = MockLifecycleSubject()
    let notes = Notes<String>()
    let bridge = mock.bridge(to: center, typed: false)
    let remove = center.note(.daemonDidEnterBackground) { notification in
      let context = DidEnterBackground.makeMessage(notification)?.context
      #expect(context?.isCurrent == true)
      #expect(LifecycleContext.current?.deadline == context?.deadline)
      notes.add(threadName())
    }
    try await mock.send(.sigusr1)
    #expect(notes.all == ["lifecycle"])
    withExtendedLifetime(bridge) { remove() }
  }

  @Test func aBlockingObserverIsGivenUpLikeAHook() async throws {
    let center = NotificationCenter()
    let mock = MockLifecycleSubject()
    let release = DispatchSemaphore(value: 0)
    let notes = Notes<String>()
    let bridge = mock.bridge(to: center, typed: false)
    let mine = Listener("mine", notes)
    mock.addObserver(mine)
    let removals = [
      center.note(.daemonDidEnterBackground) { _ in release.wait() },
      center.note(.daemonShouldSaveState) { _ in notes.add("center save") },
    ]
    try await mock.settled()
    mock.inject(.sigusr1)
    try await eventually { notes.all.last == "mine background" }
    await mock.advance(by: .seconds(60))
    let report = try await mock.settled()
    #expect(notes.all.suffix(3) == ["mine background", "mine save", "center save"])
    #expect(
      report.problems.map { "\($0.observer) \($0.outcome)" } == [
        "NotificationsOnTheWayDown abandoned(DaemonLifecycle.LifecycleReport.Outcome.Progress.running)"
      ])
    release.signal()
    try await mock.send(.sigterm)
    #expect(mock.exit != nil)
    withExtendedLifetime((bridge, mine)) { for remove in removals { remove() } }
  }

  @Test func nothingIsPostedOnceTheTokenIsGone() async throws {
    let center = NotificationCenter()
    let mock = MockLifecycleSubject()
    let notes = Notes<String>()
    let remove = center.note(.daemonDidEnterBackground) { _ in notes.add("background") }
    var bridge: ObservationToken? = mock.bridge(to: center)
    try await mock.send(.sigusr1)
    try await mock.send(.sigusr2)
    _ = bridge
    bridge = nil
    try await mock.send(.sigusr1)
    #expect(notes.all == ["background"])
    #expect(mock.removeObserverWasCalled)
    remove()
  }

  @Test func yourOwnTypesAndHealthChecksAreBridgedOneByOne() async throws {
    let center = NotificationCenter()
    let mock = MockLifecycleSubject()
    let notes = Notes<String>()
    let bridges = [
      mock.bridge(CacheDropped.self, to: center), mock.bridge(CheckHealth.self, to: center),
      mock.bridge(PlainlyBridged.self, to: center, typed: false),
    ]
    let removals = [
      center.note(CacheDropped.name) { notification in
        let own = CacheDropped.makeMessage(notification)
        #expect(notification.userInfo?["count"] as? Int == own?.count)
        notes.add("dropped \(own?.count ?? -1)")
      },
      center.note(.daemonCheckHealth) { _ in notes.add("health") },
      center.note(Notification.Name("PlainlyBridgedNotification")) {
        notes.add("\(PlainlyBridged.makeMessage($0) != nil)")
      },
    ]
    let token = center.addObserver(for: CacheDropped.self) { notes.add("typed \($0.count)") }
    let report = await mock.post(CacheDropped(count: 3))
    #expect(report.entries.map(\.observer) == ["NotificationBridge"])
    try await eventually { notes.all.count == 2 }
    #expect(notes.all.sorted() == ["dropped 3", "typed 3"])
    try await mock.send(.checkHealth)
    await mock.post(PlainlyBridged())
    #expect(notes.all.suffix(2) == ["health", "true"])
    withExtendedLifetime((bridges, token)) { for remove in removals { remove() } }
  }

  @Test func aLateBridgePostsWhatLateObserversHear() async throws {
    let center = NotificationCenter()
    let mock = MockLifecycleSubject()
    let notes = Notes<String>()
    let removals = packageNames.map { name in center.note(name) { notes.add($0.name.rawValue) } }
    let bridge = mock.bridge(to: center)
    try await mock.settled()
    #expect(
      notes.all == [
        "DaemonDidFinishLaunchingNotification", "DaemonWillEnterForegroundNotification",
      ])
    withExtendedLifetime(bridge) { for remove in removals { remove() } }
  }

  @Test func aNameThatIsTheTypesIsAProgrammersError() async {
    await #expect(processExitsWith: .failure) {
      _ = MockLifecycleSubject().bridge(Misnamed.self, to: NotificationCenter(), typed: false)
    }
  }

  @Test func aRealSubjectBridgesToo() async throws {
    let center = NotificationCenter()
    let subject = LifecycleSubject(
      configuration:
        LifecycleConfiguration(
          signals: .none, exitGrace: nil, logsProblems: false, systemd: .off))
    let notes = Notes<String>()
    let removals = packageNames.map { name in
      center.note(name) { _ in notes.add("\(name.rawValue) on \(threadName())") }
    }
    let bridge = subject.bridge(to: center)
    let exit = try await subject.run {}
    #expect(exit.code == 0)
    #expect(
      notes.all
        == [
          "DidFinishLaunching", "WillEnterForeground", "DidEnterBackground", "ShouldSaveState",
          "WillTerminate",
        ].map { "Daemon\($0)Notification on lifecycle" })
    withExtendedLifetime(bridge) { for remove in removals { remove() } }
  }

  /// A center makes its queue for typed observers at its first message, unguarded.
  @Test func manyLifecyclesPostToOneCenterAtOnce() async throws {
    let count = 16
    for _ in 0..<20 {
      let center = NotificationCenter()
      let heard = Atomic<Int>(0)
      let mocks = (0..<count).map { _ in MockLifecycleSubject() }
      let token = center.addObserver(for: DidEnterBackground.self) { _ in
        heard.add(1, ordering: .relaxed)
      }
      let bridges = mocks.map { $0.bridge(to: center) }
      for mock in mocks { mock.inject(.sigusr1) }
      for mock in mocks { try await mock.settled() }
      try await eventually { heard.load(ordering: .relaxed) == count }
      withExtendedLifetime((bridges, token)) {}
    }
  }
}
