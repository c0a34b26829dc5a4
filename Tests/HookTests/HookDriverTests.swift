// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import DaemonSystemd
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// The tasks that hooks are called in: no more than are needed, and nothing is left in them.
@Suite(.timeLimit(.minutes(10))) struct HookDriverTests {
  private struct Ping: CustomNotification {}
  private static let together = LifecyclePhase(order: 0, isConcurrent: true)

  /// The drivers of the hooks that were called; held, so that no other gets an address that was one's.
  private final class Drivers: Sendable {
    private let all = Mutex<[HookDriver]>([])

    func note() {
      guard let call = CallReference.current,
        let driver = call.core?.state.withLock({
          $0.machine.calls.find(call.id)?.driver as? HookDriver
        })
      else { return }
      all.withLock { $0.append(driver) }
    }

    /// Those since the last time.
    func take() -> [HookDriver] {
      all.withLock { drivers in
        defer { drivers = [] }
        return drivers
      }
    }
  }

  /// On a busy machine a thread may seem to block, and then the others begin beside it.
  @Test func concurrentHooksThatDoNotWaitShareATask() async throws {
    let mock = MockLifecycleSubject()
    let drivers = Drivers()
    for _ in 0..<20 {
      mock.on(Ping.self, phase: Self.together) { _ in drivers.note() }
    }
    try await mock.waitUntilSettled()
    var isShared = false
    while !isShared {
      _ = await mock.post(Ping())
      let used = drivers.take()
      #expect(used.count == 20)
      isShared = used.allSatisfy { $0 === used[0] }
    }
  }

  /// None may wait for another's end: each that blocks holds a thread until all are there.
  @Test(arguments: [true, false])
  func concurrentHooksWaitForEachOther(blocking: Bool) async throws {
    let mock = MockLifecycleSubject()
    let (drivers, gate) = (Drivers(), Gate())
    let arrived = Atomic<Int>(0)
    let count = 60
    for _ in 0..<count {
      mock.on(Ping.self, phase: Self.together) { _ in
        drivers.note()
        if arrived.add(1, ordering: .relaxed).newValue == count { gate.open() }
        if blocking {
          while arrived.load(ordering: .relaxed) < count { usleep(1000) }
        } else {
          await gate.wait()
        }
      }
    }
    try await mock.waitUntilSettled()
    let report = await mock.post(Ping())
    #expect(report.problems.isEmpty && report.entries.count == count)
    #expect(Set(drivers.take().map { ObjectIdentifier($0) }).count == count)
  }

  @Test func aDriverGoesOnAfterARest() async throws {
    let mock = MockLifecycleSubject()
    let drivers = Drivers()
    mock.on(Ping.self) { _ in drivers.note() }
    try await mock.waitUntilSettled()
    var last: HookDriver?
    var isSame = false
    // The report may be there before the driver rests.
    while !isSame {
      _ = await mock.post(Ping())
      let driver = try #require(drivers.take().first)
      isSame = driver === last
      last = driver
    }
  }

  /// Without a thread, one waits for it with its driver, and the other for a driver: nothing else would end that.
  @Test func aCallThatIsAbandonedBeforeItHasADriverEnds() async throws {
    let mayStart = Atomic<Bool>(false)
    let executor = HookExecutor(endsWhenIdle: true) { name, body in
      mayStart.load(ordering: .relaxed) && Thread.spawn(named: name, body)
    }
    let core = LifecycleCore(
      configuration: .init(signals: [:], logging: .off), initialState: .foreground,
      virtualTime: VirtualTime(), executor: executor)
    func observe() {
      let save = Hook.closure(for: ShouldSaveState.self) { _ in }
      _ = core.add(
        closures: [save], owner: nil, .init(phase: Self.together), name: .given("saver"))
    }
    func abandoned() -> Int {
      core.state.withLock { $0.machine.calls.unfinished.values.reduce(0) { $0 + $1.count } }
    }
    observe()
    observe()
    core.receive(LifecycleEvent(.saveState))
    #expect(core.state.withLock { $0.effects.starts.count } == 1)
    for _ in 0..<2 {
      core.moveClock(to: core.now.advanced(by: .seconds(10)))
      core.timePassed()
    }
    #expect(abandoned() == 2)
    observe()
    core.receive(LifecycleEvent(.saveState))
    #expect(abandoned() == 1)
    mayStart.store(true, ordering: .relaxed)
    // Nothing else tries again, since the clock is virtual.
    #expect(executor.listenIfMissing())
    try await eventually { abandoned() == 0 && core.state.withLock { $0.machine.isIdle } }
    core.close()
  }

  /// Not before what follows from its last call is done, which may block its thread: the next call would wait for that.
  @Test func aDriverThatSendsDoesNotRest() async throws {
    final class BlockingSink: LifecycleSink {
      let isServiceManager = false
      let isBlocked = Atomic<Bool>(false)
      let release = Semaphore()

      func receive(_ fact: LifecycleFact) -> MonotonicTime? {
        guard case .ended(.saveState, _, _, _) = fact, !isBlocked.exchange(true, ordering: .relaxed)
        else { return nil }
        release.wait()
        return nil
      }
    }
    let sink = BlockingSink()
    let calls = Atomic<Int>(0)
    let core = LifecycleCore(
      configuration: .init(signals: [:], logging: .off), initialState: .background,
      sinks: [sink])
    let observer = Scripted(save: { _ in calls.add(1, ordering: .relaxed) })
    core.add(observer)
    defer {
      sink.release.signal()
      core.close()
    }
    core.receive(LifecycleEvent(.saveState))
    try await eventually { sink.isBlocked.load(ordering: .relaxed) }
    core.receive(LifecycleEvent(.saveState))
    try await eventually {
      calls.load(ordering: .relaxed) == 2
    }
  }

  @Test func aDriverThatRestsHoldsNothing() async throws {
    final class Observer: StateObserver {
      func shouldSaveState(_ notification: ShouldSaveState) {}
    }
    var mock: MockLifecycleSubject? = MockLifecycleSubject()
    var observer: Observer? = Observer()
    weak let core = mock?.core
    weak let seen = observer
    try await mock?.waitUntilSettled()
    mock?.addObserver(observer!)
    _ = try await mock?.send(.saveState)
    mock?.removeObserver(observer!)
    observer = nil
    try await eventually { seen == nil }
    mock = nil
    try await eventually { core == nil }
  }
}

/// Without a limit of time, for the sake of many.
@Suite(.offThePool) struct RestTests {
  /// Each call comes in the moment in which the driver of the last one says that it rests. Under the thread sanitizer
  /// that must not seem a race; `RESTS` has the number of times.
  @Test func aRestMayEndAsItBegins() async throws {
    let rests = ProcessInfo.processInfo.environment["RESTS"].flatMap { Int($0) } ?? 2_000
    let core = LifecycleCore(
      configuration: .init(signals: [:], logging: .off), initialState: .background)
    let calls = Atomic<Int>(0)
    core.add(Scripted(save: { _ in calls.add(1, ordering: .relaxed) }))
    for _ in 0..<rests {
      core.receive(LifecycleEvent(.saveState))
      while core.state.withLock({ $0.restingDrivers.isEmpty || !$0.machine.isIdle }) {}
    }
    #expect(calls.load(ordering: .relaxed) >= rests)
    core.close()
  }
}
