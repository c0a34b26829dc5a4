// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Notifications of one's own, wildcards and streams, on the mock's clock.
@Suite struct PostTests {
  let log = Log()

  struct CacheInvalidated: CustomNotification, Equatable { let region: String }

  @Test func notificationsOfOnesOwn() async throws {
    let mock = MockLifecycleSubject()
    mock.on(CacheInvalidated.self) { notification in
      log.add(
        "\(notification.region) \(LifecycleContext.current?.cause.description ?? "no context")")
    }
    let report = await mock.post(CacheInvalidated(region: "eu"))
    #expect(log.all == ["eu a call"])
    #expect(report.entries.count == 1)
  }

  /// It waits for those that will receive it.
  @Test func aPostThatIsCancelledBeforeTheLaunchIsNotLost() async throws {
    let mock = MockLifecycleSubject(state: .launching)
    let received = Log()
    let token = mock.observe(CacheInvalidated.self) { received.add($0.region) }
    let post = Task { await mock.post(CacheInvalidated(region: "eu")) }
    try await eventually { mock.calls.contains { $0.hasPrefix("post(") } }
    post.cancel()
    try await mock.launch()
    #expect(await post.value.entries.count == 1 && received.all == ["eu"])
    withExtendedLifetime(token) {}
  }

  /// Each further hook was called without any time, and then given a grace.
  @Test func aPostInAHookEndsWithTheHooksTime() async throws {
    let mock = MockLifecycleSubject()
    let gate = Gate()
    mock.on(CacheInvalidated.self) { _ in await gate.wait() }
    for number in 0..<3 { mock.on(CacheInvalidated.self) { _ in log.add("called \(number)") } }
    mock.addObserver(
      Scripted(background: { [unowned mock] _ in
        let report = await mock.post(CacheInvalidated(region: "eu"))
        for entry in report.entries {
          if case .skipped(let reason) = entry.outcome { log.add("\(reason)") }
        }
      }))
    try await mock.waitUntilSettled()
    mock.inject(.sigusr1)
    await mock.advance(by: .seconds(11))
    gate.open()
    try await mock.waitUntilSettled()
    #expect(Array(log.all.suffix(3)) == ["outOfTime", "outOfTime", "outOfTime"])
    #expect(!log.all.contains { $0.hasPrefix("called") })
  }

  @Test func aClosureForAllReceivesEverything() async throws {
    let mock = MockLifecycleSubject()
    let token = mock.observeAll { notification in log.add("\(type(of: notification))") }
    try await mock.waitUntilSettled()
    log.clear()
    try await mock.send(.saveState)
    await mock.post(CacheInvalidated(region: "eu"))
    #expect(log.all == ["ShouldSaveState", "CacheInvalidated"])
    withExtendedLifetime(token) {}
  }

  @Test func streamsAreViewsThatFinish() async throws {
    let mock = MockLifecycleSubject()
    let saves = mock.notifications(of: ShouldSaveState.self, bufferingNewest: 2)
    let reports = mock.reports()
    for _ in 0..<3 { try await mock.send(.saveState) }
    try await mock.send(.sigterm)
    var (saved, reported) = (0, 0)
    for await _ in saves { saved += 1 }
    for await _ in reports { reported += 1 }
    #expect(saved == 2)
    // The launch's, too.
    #expect(reported == 5)
    for await _ in mock.notifications(of: ShouldSaveState.self) {
      Issue.record("a stream after the end")
    }
  }
}
