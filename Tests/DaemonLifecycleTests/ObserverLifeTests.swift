// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Observers that come and go, on the mock's clock.
@Suite struct ObserverLifeTests {
  let log = Log()

  @Test func addingTwiceDoesNothing() async throws {
    let mock = MockLifecycleSubject()
    let a = Listener("a", log)
    mock.addObserver(a)
    mock.addObserver(a)
    try await mock.send(.saveState)
    #expect(log.all == ["a launch", "a foreground", "a save"])
  }

  @Test func observersThatComeAndGoAreLetGoOf() async throws {
    let mock = MockLifecycleSubject()
    let hold = mock.holdDeliveries()
    func addAndForget() { mock.addObserver(weakly: Listener("gone", log)) }
    for _ in 0..<1000 { addAndForget() }
    #expect(mock.core.state.withLock { $0.machine.registry.members.count } < 10)
    hold.cancel()
    try await mock.waitUntilSettled()
    #expect(mock.core.state.withLock { $0.machine.registry.members.count } == 0)
  }

  @Test func removingSendsNothingAndDropsEverything() async throws {
    let mock = MockLifecycleSubject()
    let a = Listener("a", log)
    mock.addObserver(a)
    mock.observe(ShouldSaveState.self, owner: a) { owner, _ in owner.log.add("closure") }
    try await mock.waitUntilSettled()
    log.clear()
    mock.removeObserver(a)
    try await mock.send(.sigusr1)
    #expect(log.all.isEmpty)
  }

  @Test func aClosureEndsWithItsOwner() async throws {
    let mock = MockLifecycleSubject()
    func own() async throws {
      let owner = Listener("owner", log)
      mock.observe(ShouldSaveState.self, owner: owner) { owner, _ in
        owner.log.add("heard by \(owner.name)")
      }
      try await mock.send(.saveState)
      withExtendedLifetime(owner) {}
    }
    try await own()
    let report = try await mock.send(.saveState)
    #expect(log.all == ["heard by owner"])
    #expect(report.entries.isEmpty)
  }

  @MainActor private final class Window {
    var reloads = 0
    func reload() { reloads += 1 }
  }

  @Test func aSynchronousClosureOnTheMainActor() async throws {
    let mock = MockLifecycleSubject()
    let window = Window()
    let tokens = [
      mock.observe(ShouldReload.self) { @MainActor _ in window.reload() },
      mock.observe(ShouldReload.self) { @MainActor _ in throw CancellationError() },
    ]
    mock.observe(ShouldReload.self, owner: window) { @MainActor window, _ in window.reload() }
    let report = try await mock.send(.sighup)
    #expect(await window.reloads == 2)
    #expect(report.problems.count == 1)
    withExtendedLifetime(tokens) {}
  }
}
