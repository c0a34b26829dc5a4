// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import DaemonSystemd
import TestSupport
import Testing

@testable import DaemonLifecycle

/// What is done under the core's lock, for which signals wait: by how it grows, and not by how long it takes.
@Suite(.offThePool) struct LockTimeTests {
  private func core() -> LifecycleCore {
    LifecycleCore(
      configuration: .init(signals: [:], logging: .off), initialState: .background,
      virtualTime: VirtualTime(), executor: HookExecutor(endsWhenIdle: true))
  }

  private func timeToCancel(_ count: Int) -> Duration {
    let core = core()
    defer { core.close() }
    let sleepers = (0..<count).map { _ in Sleeper() }
    for sleeper in sleepers { core.add(sleeper, until: .distantFuture) }
    return threadTime { for sleeper in sleepers { core.remove(sleeper) } }
  }

  @Test func cancellingManySleepsIsNotQuadratic() {
    // The least of several: what a busy machine does to a processor's caches, and a first time's page faults, only add.
    func least(_ count: Int) -> Duration { (0..<10).map { _ in timeToCancel(count) }.min()! }
    // Four times as many take 4 times as long, and 16 times where each is searched for.
    #expect(least(2000) < least(500) * 8)
  }
}
