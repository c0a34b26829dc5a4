// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Who keeps an observer, and for how long.
@Suite(.timeLimit(.minutes(5))) struct ObserverOwnershipTests {
  private let log = Log()

  private final class Saver: SaveObserver {
    private let log: Log
    private let lifecycle: (any LifecycleObservable)?
    init(_ log: Log, _ lifecycle: (any LifecycleObservable)? = nil) {
      self.log = log
      self.lifecycle = lifecycle
    }
    deinit { log.add("gone") }
    func shouldSaveState(_ notification: ShouldSaveState) { log.add("saved") }
  }

  /// As a component that is given its lifecycle does.
  @Test func anObserverThatHoldsItsLifecycleIsLetGoOfAtTheEnd() async throws {
    weak var gone: MockLifecycleSubject?
    do {
      let mock = MockLifecycleSubject()
      gone = mock
      mock.addObserver(Saver(log, mock))
      try await mock.send(.sigterm)
    }
    try await eventually { log.all == ["saved", "gone"] && gone == nil }
  }

  /// As in a set-up that keeps no token: nothing would ever be received, and nothing said.
  @Test func aTokenThatIsReleasedBeforeTheLaunchIsSaid() {
    let lifecycle = LifecycleSubject(configuration: .init(logging: .off))
    _ = lifecycle.observe(ShouldReload.self, name: "settings") { _ in }
    lifecycle.observe(ShouldReload.self, name: "other") { _ in }.cancel()
    let said = lifecycle.core.state.withLock { $0.earlyFacts }.compactMap { fact in
      if case .warning(let text) = fact { text } else { nil }
    }
    #expect(
      said == [
        "settings ends before the launch, since its token is released: keep the token, or name an owner."
      ])
  }

  @Test func oneThatComesAfterTheEndIsNotKept() async throws {
    let mock = MockLifecycleSubject()
    try await mock.send(.sigterm)
    mock.addObserver(Saver(log))
    #expect(log.all == ["gone"])
  }

  // MARK: Threads

  /// Tests make hundreds and end none.
  @Test func mocksThatAreIdleHaveNoThreads() async throws {
    let mocks = (0..<50).map { _ in MockLifecycleSubject() }
    for mock in mocks {
      mock.addObserver(Saver(log))
      try await mock.waitUntilSettled()
    }
    try await eventually { mocks.allSatisfy { $0.core.executor.threadCount == 0 } }
    // And they go on where they were.
    for mock in mocks { try await mock.send(.sigusr1) }
    // Optimized, the first mocks may be gone by now.
    #expect(log.all.count { $0 == "saved" } == 50)
  }
}
