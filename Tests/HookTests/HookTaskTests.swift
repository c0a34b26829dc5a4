// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import DaemonSystemd
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// The tasks that hooks are called in: none waits for another, and nothing is left in them.
@Suite(.timeLimit(.minutes(10))) struct HookTaskTests {
  private struct Ping: CustomNotification {}
  private static let together = LifecyclePhase(order: 0, isConcurrent: true)

  /// None may wait for another's end: each that blocks holds a thread until all are there.
  @Test(arguments: [true, false])
  func concurrentHooksWaitForEachOther(blocking: Bool) async throws {
    let mock = MockLifecycleSubject()
    let gate = Gate()
    let arrived = Atomic<Int>(0)
    let count = 60
    for _ in 0..<count {
      mock.on(Ping.self, phase: Self.together) { _ in
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
  }

  /// The cancellation of a hook, which another thread performs, comes when the next hook runs.
  @Test func aLateCancellationDoesNotReachTheNextHook() async throws {
    let core = LifecycleCore(
      configuration: .init(signals: [:], logging: .off), initialState: .foreground,
      virtualTime: VirtualTime(), executor: HookExecutor(endsWhenIdle: true))
    let isCancelled = Mutex<[Bool]>([])
    for _ in 1...2 {
      let hook = Hook.closure(for: ShouldSaveState.self) { [weak core] _ in
        guard let core, let deadline = HookCall.current?.deadline else { return }
        if isCancelled.withLock({ $0.isEmpty }) {
          core.moveClock(to: deadline)
          core.timePassed()
        } else {
          // Until nothing runs but this.
          try? await eventually { core.executor.state.withLock { $0.running == 1 } }
        }
        isCancelled.withLock { $0.append(Task.isCancelled) }
      }
      _ = core.add(closures: [hook], owner: nil, .init(), name: .given("saver"))
    }
    core.receive(LifecycleEvent(.saveState))
    try await eventually { core.state.withLock { $0.machine.isIdle } }
    #expect(isCancelled.withLock { $0.count == 2 && !$0[1] })
    core.close()
  }

  /// Without a thread, both wait for it: nothing else would end that.
  @Test func aCallThatIsAbandonedBeforeItHasAThreadEnds() async throws {
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
    for _ in 0..<2 {
      core.moveClock(to: core.now.advanced(by: .seconds(10)))
      core.timePassed()
    }
    #expect(abandoned() == 2)
    observe()
    core.receive(LifecycleEvent(.saveState))
    mayStart.store(true, ordering: .relaxed)
    // Nothing else tries again, since nobody listens.
    executor.enqueue(.work {})
    try await eventually { abandoned() == 0 && core.state.withLock { $0.machine.isIdle } }
    core.close()
  }

  @Test func whatFollowsFromAHookKeepsNoOtherWaiting() async throws {
    final class BlockingSink: LifecyclePart {
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
      parts: [sink])
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

  @Test func aCallThatHasEndedHoldsNothing() async throws {
    final class Observer: SaveObserver {
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
