// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleFoundation
import DaemonLifecycleTesting
import Foundation
import Synchronization
import TestSupport
import Testing

private struct Limit: CustomNotification {
  static let name = Notification.Name("LimitChanged")
  let thread: Int
  let number: Int
}

private struct NoNumber: Error {}

@Suite struct AdoptionTests {
  let center = NotificationCenter()
  let mock = MockLifecycleSubject()

  /// Adopts limits, of which none may be negative and zero is not delivered.
  private func adopt(
    _ name: Notification.Name? = Limit.name, from center: NotificationCenter? = nil
  ) -> LifecycleToken {
    mock.adopt(name, from: center ?? self.center) { notification -> Limit? in
      guard let number = notification.object as? Int else { throw NoNumber() }
      let thread = notification.userInfo?["thread"] as? Int
      return number == 0 ? nil : Limit(thread: thread ?? 0, number: number)
    }
  }

  private var limits: [Limit] { mock.delivered.compactMap { $0 as? Limit } }

  @Test func eachCentersNotificationsAreDeliveredInOrderUntilTheTokenIsCancelled() async throws {
    let other = NotificationCenter()
    let (first, second) = (adopt(), adopt(nil, from: other))
    center.post(name: Limit.name, object: 1)
    center.post(name: Notification.Name("Other"), object: 2)
    other.post(name: Notification.Name("Other"), object: 3)
    other.post(name: Limit.name, object: 0)
    other.post(name: Limit.name, object: 4)
    #expect(try await mock.waitUntilSettled().problems.isEmpty)
    #expect(limits.map(\.number) == [1, 3, 4])
    #expect(mock.reports.map(\.cause.description).contains("notification LimitChanged"))
    first.cancel()
    center.post(name: Limit.name, object: 5)
    other.post(name: Limit.name, object: 6)
    try await mock.waitUntilSettled()
    #expect(limits.map(\.number) == [1, 3, 4, 6])
    withExtendedLifetime(second) {}
  }

  @Test func anErrorOfTheClosureIsInOneReport() async throws {
    let tokens = [adopt(), adopt(Notification.Name("Other"))]
    try await mock.waitUntilSettled()
    var reports = mock.reports().makeAsyncIterator()
    center.post(name: Limit.name, object: "seven")
    let problem = try #require(await reports.next()?.problems.first)
    #expect(problem.observer == "NotificationAdopter")
    guard case .failed(let error) = problem.outcome else {
      Issue.record("\(problem)")
      return
    }
    #expect(error is NoNumber)
    try await mock.waitUntilSettled()
    #expect(mock.reports.flatMap(\.problems).count == 1)
    withExtendedLifetime(tokens) {}
  }

  @Test func manyThreadsPostAtOnceWithALockThatHooksTake() async throws {
    let (threads, count) = (8, 100)
    let lock = Mutex(())
    let observation = mock.observe(Limit.self) { _ in lock.withLock { _ in } }
    let adoption = adopt()
    // Threads, and not the pool, which other tests need.
    let done = Atomic<Int>(0)
    for thread in 0..<threads {
      Thread {
        for number in 1...count {
          lock.withLock { _ in
            center.post(name: Limit.name, object: number, userInfo: ["thread": thread])
          }
        }
        done.add(1, ordering: .relaxed)
      }.start()
    }
    try await eventually { done.load(ordering: .relaxed) == threads }
    #expect(try await mock.waitUntilSettled().problems.isEmpty)
    for thread in 0..<threads {
      #expect(limits.filter { $0.thread == thread }.map(\.number) == Array(1...count))
    }
    withExtendedLifetime((observation, adoption)) {}
  }

  @Test func deliversAfterTheLaunchAndNothingOnceTheTerminationHasBegun() async throws {
    let mock = MockLifecycleSubject(state: .launching)
    let tokens = [
      mock.adopt(Limit.name, from: center) { Limit(thread: 0, number: $0.object as? Int ?? 0) },
      mock.observe(WillTerminate.self) { [center] _ in center.post(name: Limit.name, object: 2) },
    ]
    center.post(name: Limit.name, object: 1)
    try await mock.launch()
    try await mock.waitUntilSettled()
    try await mock.send(.sigterm)
    center.post(name: Limit.name, object: 3)
    try await mock.waitUntilSettled()
    #expect(
      mock.delivered.prefix(3).map { "\(type(of: $0))" } == [
        "DidFinishLaunching", "WillEnterForeground", "Limit",
      ])
    #expect(mock.delivered.compactMap { ($0 as? Limit)?.number } == [1])
    #expect(mock.exitResult?.exitStatus == 0)
    withExtendedLifetime(tokens) {}
  }

  // MARK: Loops

  /// Two lifecycles that post to two centres and adopt everything from both: nothing is adopted, not even what an observer
  /// posts again under another name.
  @Test func whatABridgePostsIsNotAdopted() async throws {
    let other = MockLifecycleSubject()
    let centers = [center, NotificationCenter()]
    let posts = Atomic<Int>(0)
    for center in centers {
      center.note(.daemon(DidEnterBackground.self)) { [unowned center] notification in
        posts.add(1, ordering: .relaxed)
        center.post(name: Notification.Name("Again"), object: notification.object)
      }
    }
    let tokens = [mock, other].flatMap { lifecycle in
      centers.flatMap { center in
        [
          lifecycle.bridge(to: center),
          lifecycle.adopt(nil, from: center) { _ in Limit(thread: 0, number: 1) },
          lifecycle.adopt(.daemon(DidEnterBackground.self), from: center) { _ in
            Limit(thread: 0, number: 2)
          },
        ]
      }
    }
    for _ in 0..<2 {
      for lifecycle in [mock, other] { try await lifecycle.waitUntilSettled() }
    }
    try await mock.send(.sigusr1)
    for lifecycle in [mock, other, mock, other] { try await lifecycle.waitUntilSettled() }
    #expect(posts.load(ordering: .relaxed) == 2)
    #expect((mock.delivered + other.delivered).allSatisfy { !($0 is Limit) })
    #expect(mock.delivered.count { $0 is DidEnterBackground } == 1)
    withExtendedLifetime(tokens) {}
  }

  @Test func whatIsAdoptedIsNotPosted() async throws {
    let posted = Log()
    center.note(nil) { posted.add($0.name.rawValue) }
    let tokens = [mock.bridge(to: center), adopt()]
    try await mock.waitUntilSettled()
    center.post(name: Limit.name, object: 1)
    try await mock.waitUntilSettled()
    #expect(limits.count == 1)
    #expect(posted.all.suffix(1) == ["LimitChanged"])
    #expect(posted.all.count { $0.contains("Limit") } == 1)
    withExtendedLifetime(tokens) {}
  }
}
