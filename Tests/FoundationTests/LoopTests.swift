// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleFoundation
import DaemonLifecycleTesting
import Foundation
import TestSupport
import Testing

// What crosses once crosses no second time. That no type goes both ways is the compiler's to check.

private struct Ping: BridgedNotification, CustomNotification {
  static let name = Notification.Name("Ping")
  let number: Int
}

/// Wants to come in under the name under which `Ping` goes out.
private struct PingAgain: AdoptedNotification {
  static let source = NotificationSource<Void>.name(Ping.name)
  init(adopting _: Void) {}
}

private struct PingObject: AdoptedNotification {
  static let source = NotificationSource<Ping>.object(of: Notification.Name("Reposted"))
  init(adopting _: Ping) {}
}

private struct PingInside: AdoptedNotification {
  static let source = NotificationSource<Ping>.userInfo("ping", of: Notification.Name("Inside"))
  init(adopting _: Ping) {}
}

private struct BackgroundAgain: AdoptedNotification {
  static let source = NotificationSource<Void>.name(.daemonDidEnterBackground)
  init(adopting _: Void) {}
}

private struct Incoming: AdoptedNotification {
  static let name = Notification.Name("Incoming")
  static let source = NotificationSource<Int>.object(of: name)
  let number: Int
  init(adopting number: Int) { self.number = number }
}

private struct PingMessage: AdoptedNotification {
  static let source = NotificationSource<Ping>.message
  init(adopting _: Ping) {}
}

@Suite struct LoopTests {
  let center = NotificationCenter()
  let mock = MockLifecycleSubject()

  private func failures(_ mock: MockLifecycleSubject) -> [NotificationAdoptionError] {
    mock.reports.flatMap(\.problems).compactMap {
      guard case .failed(let error) = $0.outcome else { return nil }
      return error as? NotificationAdoptionError
    }
  }
  private func count<N: LifecycleNotification>(_: N.Type, _ mock: MockLifecycleSubject) -> Int {
    mock.delivered.count { $0 is N }
  }

  @Test func whatGoesOutIsNotAdoptable() async throws {
    let tokens = [
      mock.bridge(to: center), mock.bridge(Ping.self, to: center),
      mock.adopt(PingAgain.self, from: center), mock.adopt(BackgroundAgain.self, from: center),
    ]
    await mock.post(Ping(number: 1))
    try await mock.send(.sigusr1)
    try await mock.settled()
    #expect(
      failures(mock) == [
        .crossesAgain("Ping", type: "Ping"),
        .crossesAgain("DaemonDidEnterBackgroundNotification", type: "DidEnterBackground"),
      ])
    #expect(count(PingAgain.self, mock) == 0)
    #expect(count(BackgroundAgain.self, mock) == 0)
    withExtendedLifetime(tokens) {}
  }

  @Test func noChainThroughTwoLifecycles() async throws {
    let other = MockLifecycleSubject()
    let second = NotificationCenter()
    // Each adopts what the other bridges, over one center and over two.
    let tokens = [mock, other].flatMap { lifecycle in
      [center, second].flatMap { center in
        [
          lifecycle.bridge(Ping.self, to: center, typed: false),
          lifecycle.adopt(PingAgain.self, from: center),
        ]
      }
    }
    await mock.post(Ping(number: 1))
    for lifecycle in [mock, other] { try await lifecycle.settled() }
    for lifecycle in [mock, other] {
      #expect(count(PingAgain.self, lifecycle) == 0)
      #expect(
        failures(lifecycle)
          == Array(repeating: .crossesAgain("Ping", type: "Ping"), count: 2))
    }
    #expect(count(Ping.self, mock) == 1)
    #expect(count(Ping.self, other) == 0)
    withExtendedLifetime(tokens) {}
  }

  @Test func theSameValueUnderAnotherNameIsKnown() async throws {
    let tokens = [
      mock.bridge(Ping.self, to: center), mock.adopt(PingObject.self, from: center),
      mock.adopt(PingInside.self, from: center), mock.adopt(Incoming.self, from: center),
      // What came in, posted as it is.
      mock.observe(Incoming.self) { [center] in center.post(name: Incoming.name, object: $0) },
    ]
    let remove = center.note(Ping.name) { [center] notification in
      center.post(name: Notification.Name("Reposted"), object: notification.object)
      center.post(
        name: Notification.Name("Inside"), object: nil,
        userInfo: ["ping": notification.object as Any])
    }
    await mock.post(Ping(number: 1))
    center.post(name: Incoming.name, object: 7)
    try await mock.settled()
    #expect(
      failures(mock) == [
        .crossesAgain("Reposted", type: "Ping"), .crossesAgain("Inside", type: "Ping"),
        .crossesAgain("Incoming", type: "Incoming"),
      ])
    #expect(count(Incoming.self, mock) == 1)
    withExtendedLifetime(tokens) { remove() }
  }

  @Test func typedMessagesThatGoOutDoNotComeIn() async throws {
    let other = MockLifecycleSubject()
    let tokens = [
      mock.bridge(Ping.self, to: center), other.adopt(PingMessage.self, from: center),
    ]
    await mock.post(Ping(number: 1))
    try await eventually { failures(other).count == 1 }
    #expect(failures(other) == [.crossesAgain("Ping", type: "Ping")])
    withExtendedLifetime(tokens) {}
  }

  /// Two bridges that would feed each other if one could: a post is heard as often as there are bridges.
  @Test func aBridgeOfEverythingTwiceEnds() async throws {
    let other = MockLifecycleSubject()
    let tokens = [
      mock.bridge(to: center), other.bridge(to: center),
      mock.adopt(BackgroundAgain.self, from: center),
      other.adopt(BackgroundAgain.self, from: center),
    ]
    mock.inject(.sigusr1)
    other.inject(.sigusr1)
    for lifecycle in [mock, other] { try await lifecycle.settled() }
    for lifecycle in [mock, other, mock, other] { try await lifecycle.settled() }
    for lifecycle in [mock, other] {
      #expect(count(DidEnterBackground.self, lifecycle) == 1)
      #expect(count(BackgroundAgain.self, lifecycle) == 0)
      #expect(failures(lifecycle).count == 2)
    }
    withExtendedLifetime(tokens) {}
  }
}
