// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import TestSupport
import Testing

@testable import DaemonLifecycle

/// How long a stop may take, when that changes while it is under way.
@Suite(.timeLimit(.minutes(1))) struct StopBudgetTests {
  private func stopping(_ observer: Scripted) async -> ObservedCore {
    let observed = ObservedCore(
      LifecycleConfiguration(hookDeadline: .seconds(100), exitGrace: nil, logging: .off))
    observed.core.add(observer)
    _ = await observed.core.launch()
    observed.core.receive(Self.sigterm)
    return observed
  }

  private static let sigterm = LifecycleEvent(
    .terminate, cause: LifecycleCause(.signal(.sigterm, pid: 1, uid: 0, coalesced: 1)))

  /// The bus may answer after the stop has begun.
  @Test func aLimitThatIsLearntLateCounts() async throws {
    let gate = Gate()
    let stuck = Scripted(background: { _ in await gate.wait() })
    let observed = await stopping(stuck)
    observed.core.receive(.stopTimeout(.seconds(20)))
    await observed.core.advance(by: .seconds(20))
    try await observed.core.untilIdle()
    #expect(observed.log.names.last == "terminated 124")
    gate.open()
  }

  /// A hook that obeys is not abandoned the moment it is cancelled.
  @Test func theSecondSignalLeavesTimeToObey() async throws {
    let gate = Gate()
    let obedient = Scripted(background: { _ in await gate.wait() })
    let observed = await stopping(obedient)
    await observed.core.advance(by: .seconds(1))
    observed.core.receive(Self.sigterm)
    await observed.core.advance(by: .milliseconds(100))
    gate.open()
    try await observed.core.untilIdle()
    guard case .terminated(let exit) = try #require(observed.log.all.last) else { return }
    let outcome = try #require(exit.report.entries.first?.outcome)
    guard case .timedOut = outcome else {
      Issue.record("\(outcome)")
      return
    }
  }
}
