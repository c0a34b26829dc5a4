// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// A user's object may call the lifecycle as it goes away: under the core's lock that would end this process.
@Suite(.timeLimit(.minutes(5))) struct ReleaseTests {
  private let mock = MockLifecycleSubject()
  private let gone = Counter()

  final class Counter: Sendable {
    private let count = Mutex(0)
    var value: Int { count.withLock { $0 } }
    func add() { count.withLock { $0 += 1 } }
  }

  /// What each of a user's objects here has.
  final class Leaving: Sendable {
    private let core: LifecycleCore
    private let gone: Counter
    private let token: LifecycleToken
    init(_ mock: MockLifecycleSubject, _ gone: Counter) {
      (core, self.gone) = (mock.core, gone)
      token = mock.observe(ShouldReload.self) { _ in }
    }
    deinit {
      core.warn("In a deinit: \(core.lifecycleState).")
      gone.add()
    }
  }

  private final class Observer: BackgroundObserver {
    let leaving: Leaving
    let background: @Sendable (Observer) async -> Void
    init(_ leaving: Leaving, _ background: @escaping @Sendable (Observer) async -> Void) {
      (self.leaving, self.background) = (leaving, background)
    }
    func didEnterBackground(_ notification: DidEnterBackground) async { await background(self) }
  }

  private struct Thrown: Error { let leaving: Leaving }

  private func areGone(_ count: Int = 1) async throws {
    let gone = gone
    try await eventually { gone.value == count }
  }

  @Test func anObserverRemovesItselfInItsHook() async throws {
    let core = mock.core
    mock.addObserver(Observer(Leaving(mock, gone)) { core.remove(owner: $0) })
    try await mock.send(.sigusr1)
    try await areGone()
  }

  @Test func aClosureCancelsItsTokenInItself() async throws {
    let token = Mutex<LifecycleToken?>(nil)
    func observe() -> LifecycleToken {
      mock.observe(DidEnterBackground.self) { [leaving = Leaving(mock, gone)] _ in
        token.withLock { $0.take() }?.cancel()
        withExtendedLifetime(leaving) {}
      }
    }
    let new = observe()
    token.withLock { $0 = new }
    try await mock.send(.sigusr1)
    try await areGone()
  }

  private struct Note: CustomNotification { let leaving: Leaving }
  private final class Launching: LaunchObserver {
    let gate: Gate
    init(_ gate: Gate) { self.gate = gate }
    func didFinishLaunching(_ notification: DidFinishLaunching) async { await gate.wait() }
  }

  @Test func aPostComesAfterTheStop() async throws {
    let gate = Gate()
    mock.addObserver(Launching(gate))
    mock.inject(.sigterm)
    mock.inject(.post(Note(leaving: Leaving(mock, gone))))
    gate.open()
    try await areGone()
  }

  @Test(arguments: [false, true]) func itsOwnerRemovesItWhileItsHookRuns(abandoned: Bool)
    async throws
  {
    let (began, ends, core) = (Gate(), Gate(), mock.core)
    func add() -> @Sendable () -> Void {
      let observer = Observer(Leaving(mock, gone)) { _ in
        began.open()
        await ends.wait()
      }
      mock.addObserver(observer)
      return { [weak observer] in observer.map { core.remove(owner: $0) } }
    }
    let remove = add()
    try await mock.waitUntilSettled()
    mock.inject(.sigusr1)
    await began.wait()
    if abandoned { await mock.advance(by: .seconds(60)) }
    remove()
    ends.open()
    try await areGone()
  }

  @Test func aHookEndsAfterTheEnd() async throws {
    let ends = Gate()
    mock.addObserver(Observer(Leaving(mock, gone)) { _ in await ends.wait() })
    try await mock.waitUntilSettled()
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(100))
    #expect(mock.exitResult?.exitStatus == 124)
    #expect(gone.value == 0)
    ends.open()
    try await areGone()
  }

  /// The next error replaces it, a run that lasts has it forgotten, and the end too.
  @Test func aWorkForgetsWhatItThrew() async throws {
    let (mock, gone, runs) = (mock, gone, Counter())
    mock.addForeground(name: "work", restarting: .backoff()) { _ in
      runs.add()
      if runs.value < 4 { throw Thrown(leaving: Leaving(mock, gone)) }
      try await mock.clock.sleep(for: .seconds(100_000))
    }
    for _ in 0..<40 where runs.value < 4 { await mock.advance(by: .seconds(10)) }
    try await areGone(2)
    await mock.advance(by: .seconds(10_000))
    try await areGone(3)
  }

  /// With the end.
  @Test func thousandsLeaveTogether() async throws {
    for _ in 0..<3000 { mock.addObserver(Observer(Leaving(mock, gone)) { _ in }) }
    try await mock.send(.sigterm)
    try await areGone(3000)
  }

  @Test func aPoolReleasesWhenItIsClosed() {
    final class Last: Sendable {
      let gone: Counter
      init(_ gone: Counter) { self.gone = gone }
      deinit { gone.add() }
    }
    final class Holder: Sendable {
      let last: Last
      init(_ gone: Counter) { last = Last(gone) }
      deinit { ReleasePool.release(last) }
    }
    ReleasePool.open()
    ReleasePool.open()
    for _ in 0..<2 { _ = Holder(gone) }
    #expect(ReleasePool.close() == nil)
    #expect(gone.value == 0)
    let released = ReleasePool.close()
    #expect(released?.values.count == 2)
    #expect(gone.value == 0)
    withExtendedLifetime(released) {}
  }
}
