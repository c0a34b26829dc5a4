// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleFoundation
import DaemonLifecycleTesting
import Foundation
import Synchronization
import TestSupport
import Testing

private struct BadRegion: Error, CustomStringConvertible {
  let region: String
  var description: String { "\(region) is no region" }
}

private struct CacheInvalidated: AdoptedNotification {
  static let name = Notification.Name("CacheInvalidated")
  static let source = NotificationSource<String>.userInfo("region", of: name)
  let region: String
  init(adopting region: String) throws {
    guard region.count == 2 else { throw BadRegion(region: region) }
    self.region = region
  }
}

private struct LimitChanged: AdoptedNotification {
  static let name = Notification.Name("LimitChanged")
  static let source = NotificationSource<Int>.object(of: name)
  let limit: Int
  init(adopting limit: Int) { self.limit = limit }
}

private struct FileGrew: AdoptedNotification {
  static let name = Notification.Name("FileGrew")
  static let source = NotificationSource.userInfo(
    ("path", String.self), ("size", Int.self), of: name)
  let text: String
  init(adopting payload: (String, Int)) { text = "\(payload.0) \(payload.1)" }
}

private struct ClockChanged: AdoptedNotification {
  static let name = Notification.Name("ClockChanged")
  static let source = NotificationSource<Void>.name(name)
  init(adopting _: Void) {}
}

private struct QuotaMessage: NotificationCenter.AsyncMessage {
  typealias Subject = NSObject
  let quota: Int
}
private struct QuotaChanged: AdoptedNotification {
  static let source = NotificationSource<QuotaMessage>.message
  let quota: Int
  init(adopting message: QuotaMessage) { quota = message.quota }
}

private struct ThemeMessage: NotificationCenter.MainActorMessage, Sendable {
  typealias Subject = NSObject
  let theme: String
}
private struct ThemeChanged: AdoptedNotification {
  static let source = NotificationSource<ThemeMessage>.message
  let theme: String
  init(adopting message: ThemeMessage) { theme = message.theme }
}

/// Decoding takes the lock that the poster holds while it posts.
private struct Guarded: AdoptedNotification {
  static let name = Notification.Name("Guarded")
  static let source = NotificationSource<Int>.object(of: name)
  static let lock = Mutex(())
  let number: Int
  init(adopting number: Int) { self.number = Self.lock.withLock { _ in number } }
}

private struct Numbered: AdoptedNotification {
  static let name = Notification.Name("Numbered")
  static let source = NotificationSource.userInfo(
    ("thread", Int.self), ("number", Int.self), of: name)
  let thread: Int
  let number: Int
  init(adopting payload: (Int, Int)) { (thread, number) = payload }
}

@Suite struct AdoptionTests {
  let center = NotificationCenter()
  let mock = MockLifecycleSubject()

  @Test func namedNotificationsAreDeliveredInTheOrderOfTheirPosts() async throws {
    let notes = Notes<String>()
    let tokens = [
      mock.adopt(CacheInvalidated.self, from: center), mock.adopt(LimitChanged.self, from: center),
      mock.adopt(FileGrew.self, from: center), mock.adopt(ClockChanged.self, from: center),
      mock.observe(CacheInvalidated.self) { notes.add($0.region) },
      mock.observe(LimitChanged.self) { notes.add("\($0.limit)") },
      mock.observe(FileGrew.self) { notes.add($0.text) },
      mock.observe(ClockChanged.self) { _ in notes.add("clock") },
    ]
    center.post(name: LimitChanged.name, object: 7)
    center.post(name: FileGrew.name, object: nil, userInfo: ["path": "/x", "size": 9])
    center.post(name: ClockChanged.name, object: nil)
    center.post(name: CacheInvalidated.name, object: nil, userInfo: ["region": "eu"])
    let report = try await mock.settled()
    #expect(notes.all == ["7", "/x 9", "clock", "eu"])
    #expect(report.problems.isEmpty)
    #expect(mock.reports.map(\.cause.description).contains("notification CacheInvalidated"))
    withExtendedLifetime(tokens) {}
  }

  @Test func typedMessagesAreDelivered() async throws {
    let notes = Notes<String>()
    let tokens = [
      mock.adopt(QuotaChanged.self, from: center), mock.adopt(ThemeChanged.self, from: center),
      mock.observe(QuotaChanged.self) { notes.add("\($0.quota)") },
      mock.observe(ThemeChanged.self) { notes.add($0.theme) },
    ]
    center.post(QuotaMessage(quota: 4))
    try await eventually { notes.all == ["4"] }
    await MainActor.run {
      for theme in ["dark", "light"] { center.post(ThemeMessage(theme: theme)) }
    }
    // Taken while they are posted: nothing more to wait for.
    try await mock.settled()
    #expect(notes.all == ["4", "dark", "light"])
    withExtendedLifetime(tokens) {}
  }

  @Test(
    arguments: [
      (
        nil,
        "CacheInvalidated can't be adopted: its userInfo[\"region\"] is missing, which should be of type String."
      ),
      (
        7,
        "CacheInvalidated can't be adopted: its userInfo[\"region\"] is of type Int and not String."
      ),
      ("nowhere", "nowhere is no region"),
    ] as [((any Sendable)?, String)])
  func whatDoesNotDecodeIsInTheReport(_ region: (any Sendable)?, _ sentence: String) async throws {
    let notes = Notes<String>()
    let tokens = [
      mock.adopt(CacheInvalidated.self, from: center),
      mock.observe(CacheInvalidated.self) { notes.add($0.region) },
    ]
    try await mock.settled()
    var reports = mock.reports().makeAsyncIterator()
    center.post(name: CacheInvalidated.name, object: nil, userInfo: region.map { ["region": $0] })
    let problem = try #require(await reports.next()?.problems.first)
    #expect(problem.observer == "NotificationAdopter")
    #expect(problem.notification.map { "\($0)" } == "NotificationArrival<CacheInvalidated>")
    guard case .failed(let error) = problem.outcome else {
      Issue.record("\(problem)")
      return
    }
    #expect("\(error)" == sentence)
    #expect(error is BadRegion || error is NotificationAdoptionError)
    center.post(name: CacheInvalidated.name, object: nil, userInfo: ["region": "us"])
    try await mock.settled()
    #expect(notes.all == ["us"])
    withExtendedLifetime(tokens) {}
  }

  @Test func nothingRunsUnderALockOfThePosters() async throws {
    let notes = Notes<Int>()
    let tokens = [
      mock.adopt(Guarded.self, from: center), mock.observe(Guarded.self) { notes.add($0.number) },
    ]
    for number in 0..<100 {
      Guarded.lock.withLock { _ in center.post(name: Guarded.name, object: number) }
    }
    try await mock.settled()
    #expect(notes.all == Array(0..<100))
    withExtendedLifetime(tokens) {}
  }

  @Test func manyThreadsPostAtOnce() async throws {
    let (threads, count) = (8, 100)
    let notes = Notes<(Int, Int)>()
    let tokens = [
      mock.adopt(Numbered.self, from: center),
      mock.observe(Numbered.self) { notes.add(($0.thread, $0.number)) },
    ]
    // Threads, and not the pool, which other tests need.
    let done = Atomic<Int>(0)
    await withCheckedContinuation { continuation in
      let box = Mutex<CheckedContinuation<Void, Never>?>(continuation)
      for thread in 0..<threads {
        Thread {
          for number in 0..<count {
            center.post(
              name: Numbered.name, object: nil, userInfo: ["thread": thread, "number": number])
          }
          if done.add(1, ordering: .relaxed).newValue == threads {
            box.withLock { $0.take() }?.resume()
          }
        }.start()
      }
    }
    let report = try await mock.settled()
    #expect(report.problems.isEmpty)
    for thread in 0..<threads {
      #expect(notes.all.filter { $0.0 == thread }.map(\.1) == Array(0..<count))
    }
    withExtendedLifetime(tokens) {}
  }

  @Test func nothingIsAdoptedOnceTheTokenIsGone() async throws {
    let notes = Notes<Int>()
    let observation = mock.observe(LimitChanged.self) { notes.add($0.limit) }
    let adoption = mock.adopt(LimitChanged.self, from: center)
    center.post(name: LimitChanged.name, object: 1)
    try await mock.settled()
    adoption.cancel()
    center.post(name: LimitChanged.name, object: 2)
    try await mock.settled()
    #expect(notes.all == [1])
    withExtendedLifetime(observation) {}
  }

  @Test func whatIsPostedBeforeTheLaunchComesAfterIt() async throws {
    let mock = MockLifecycleSubject(state: .launching)
    let notes = Notes<String>()
    let tokens = [
      mock.adopt(LimitChanged.self, from: center),
      mock.observe(LimitChanged.self) { notes.add("\($0.limit)") },
      mock.observe(WillEnterForeground.self) { _ in notes.add("foreground") },
    ]
    center.post(name: LimitChanged.name, object: 3)
    try await mock.launch()
    try await mock.settled()
    #expect(notes.all == ["foreground", "3"])
    withExtendedLifetime(tokens) {}
  }

  @Test func nothingIsAdoptedOnceTheTerminationHasBegun() async throws {
    let notes = Notes<Int>()
    let tokens = [
      mock.adopt(LimitChanged.self, from: center),
      mock.observe(LimitChanged.self) { notes.add($0.limit) },
      mock.observe(WillTerminate.self) { [center] _ in
        center.post(name: LimitChanged.name, object: 1)
      },
    ]
    try await mock.send(.sigterm)
    center.post(name: LimitChanged.name, object: 2)
    try await mock.settled()
    #expect(notes.all.isEmpty)
    #expect(mock.exit?.code == 0)
    withExtendedLifetime(tokens) {}
  }

  @Test func eachCenterIsAdoptedForItself() async throws {
    let other = NotificationCenter()
    let notes = Notes<Int>()
    let tokens = [
      mock.adopt(LimitChanged.self, from: center), mock.adopt(LimitChanged.self, from: other),
      mock.observe(LimitChanged.self) { notes.add($0.limit) },
    ]
    center.post(name: LimitChanged.name, object: 1)
    other.post(name: LimitChanged.name, object: 2)
    try await mock.settled()
    #expect(notes.all == [1, 2])
    withExtendedLifetime(tokens) {}
  }

  @Test func aHookMayPostWhatIsAdopted() async throws {
    let notes = Notes<Int>()
    let tokens = [
      mock.adopt(LimitChanged.self, from: center),
      mock.observe(LimitChanged.self) { notes.add($0.limit) },
      mock.observe(DidEnterBackground.self) { [center] _ in
        center.post(name: LimitChanged.name, object: 5)
      },
    ]
    try await mock.send(.sigusr1)
    try await mock.settled()
    #expect(notes.all == [5])
    withExtendedLifetime(tokens) {}
  }
}
