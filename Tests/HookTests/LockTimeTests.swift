// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import TestSupport
import Testing

@testable import DaemonLifecycle

/// What is done under the core's lock, for which signals wait: by how it grows, and not by how long it takes.
@Suite(.offThePool) struct LockTimeTests {
  private func core() -> LifecycleCore {
    LifecycleCore(
      configuration: .init(signals: .none, logsProblems: false), initialState: .background,
      time: .virtual(VirtualTime()), executor: HookExecutor(endsWhenIdle: true))
  }

  private func timeToCancel(_ count: Int) -> Duration {
    let core = core()
    let sleepers = (0..<count).map { _ in Sleeper() }
    for sleeper in sleepers { core.add(sleeper, until: LifecycleClock.Instant.distantFuture.time) }
    defer { core.close() }
    return ContinuousClock().measure { for sleeper in sleepers { core.remove(sleeper) } }
  }

  @Test func cancellingManySleepsIsNotQuadratic() {
    withKnownIssue("Cancelling a sleep searches the whole list of sleeps.", isIntermittent: true) {
      // Four times as many take 4 times as long, and 16 times where each is searched for.
      #expect(timeToCancel(2000) < timeToCancel(500) * 8)
    }
  }
}
