// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import DaemonSystemd
import TestSupport
import Testing

@testable import DaemonLifecycle

/// `stopDelay` is part of the stop budget, and a task serves through it.
@Suite("Drain: budget and tasks", .timeLimit(.minutes(5))) struct DrainBudgetTests {
  private static let sigterm = LifecycleEvent(
    .terminate, cause: LifecycleCause(.signal(.sigterm, pid: 1, uid: 0)))

  private func serving(
    _ configuration: LifecycleConfiguration, _ observers: [Scripted] = []
  ) async -> ObservedCore {
    let observed = ObservedCore(configuration)
    for observer in observers { observed.core.add(observer) }
    _ = await observed.core.launch()
    return observed
  }

  private func configuration(
    _ drain: Duration, budget: Duration? = .seconds(20), exitGrace: Duration? = nil
  ) -> LifecycleConfiguration {
    LifecycleConfiguration(
      stopTimeout: budget, exitGrace: exitGrace, stopDelay: drain, logging: .off)
  }

  /// Seconds from now until the end of the drain, in a configuration with nothing known from systemd.
  private func longest(_ configuration: LifecycleConfiguration) -> Duration {
    let zero = MonotonicTime(nanoseconds: 0)
    let budget = StopBudget(.init(configuration: configuration), allowed: nil, from: zero)
    return zero.duration(to: budget.drainEnd(.init(configuration: configuration)))
  }

  // MARK: Budget

  @Test func itFitsBesideTheReserveAndAHook() {
    // 20 s, 10 of them reserved, of which half are for hooks.
    #expect(longest(configuration(.seconds(60))) == .seconds(5))
    #expect(longest(configuration(.seconds(4))) == .seconds(4))
    // 58 s to the end, 48 to the reserve, 11 for a hook.
    #expect(
      longest(configuration(.seconds(60), budget: .seconds(60), exitGrace: .seconds(2)))
        == .seconds(37))
    #expect(longest(configuration(.seconds(-1))) == .zero)
    #expect(longest(configuration(.seconds(5), budget: .zero)) == .zero)
    #expect(longest(configuration(.seconds(Int64.max), budget: .seconds(Int64.max))) > .zero)
  }

  @Test func whatDoesNotFitIsSaidAtTheStart() {
    #expect(
      StopBudget.drainProblem(.init(configuration: configuration(.seconds(60))))
        == "stopDelay is 60 s, but only 5 s fit into the stop beside saveReserve and the hooks. Raise the stop timeout"
        + " (in a container: its grace period), or lower saveReserve or hookTimeout."
    )
    #expect(LifecycleWiring(configuration(.seconds(-1))).problems[0].contains("negative"))
    #expect(StopBudget.drainProblem(.init(configuration: configuration(.seconds(5)))) == nil)
    #expect(LifecycleWiring(configuration(.seconds(60))).problems.count == 1)
  }

  /// The longest drain, then a stuck hook: the save still gets its reserve.
  @Test func theSaveHasItsReserve() async throws {
    let gate = Gate()
    let saved = Log()
    let stuck = Scripted(background: gate.hold)
    let saver = Scripted(save: { _ in saved.add("save") })
    let observed = await serving(configuration(.seconds(60)), [saver, stuck])
    let began = observed.core.now
    observed.core.receive(Self.sigterm)
    await observed.core.advance(by: .milliseconds(4999))
    #expect(!observed.log.names.contains("terminating"))
    await observed.core.advance(by: .seconds(15))
    try await observed.core.untilIdle()
    #expect(saved.all == ["save"])
    #expect(began.duration(to: observed.core.now) < .seconds(20))
    #expect(observed.log.names.contains("terminated 124"))
    #expect(observed.log.names.contains("draining 5 s"))
    gate.open()
  }

  /// A reload's hook that hangs, the pauses after it, and those of a daemon that only stops.
  @Test(arguments: [2, 9, 20, 29], [false, true])
  func whatHangsCostsNoOtherItsPause(budget: Int, inReload: Bool) async throws {
    let gate = Gate()
    let log = Log()
    func working() -> Scripted {
      Scripted(background: { _ in log.add("paused") }, save: { _ in log.add("saved") })
    }
    let stuck =
      inReload
      ? Scripted(save: { _ in
        log.add("stuck")
        await gate.wait()
      }) : Scripted(background: gate.hold)
    let observed = await serving(
      configuration(.zero, budget: .seconds(budget)), [working(), stuck, working()])
    if inReload {
      observed.core.receive(LifecycleEvent(.reload))
      try await eventually { log.all.contains("stuck") }
    }
    observed.core.receive(Self.sigterm)
    for _ in 0..<budget * 4 { await observed.core.advance(by: .milliseconds(250)) }
    try await observed.core.untilIdle()
    #expect(log.all.count { $0 == "paused" } == 2)
    #expect(log.all.last == "saved")
    gate.open()
  }

  @Test func aLimitThatIsKnownIsSaid() async throws {
    let observed = await serving(configuration(.seconds(30), budget: nil))
    observed.core.take(.systemd(.stopTimeout(.seconds(10))))
    observed.core.receive(Self.sigterm)
    #expect(observed.log.names.contains { $0.hasPrefix("warning stopDelay is 30 s") })
    await observed.core.advance(by: .seconds(3))
    try await observed.core.untilIdle()
    #expect(observed.log.names.last == "terminated 0")
  }

  // MARK: Tasks

  @Test func aTaskServesThroughIt() async throws {
    let observed = await serving(configuration(.seconds(4)))
    let core = observed.core
    let log = Log()
    core.addTask {
      do { try await LifecycleClock(keeper: core).sleep(for: .seconds(1000)) } catch {
        log.add("cancelled")
      }
    }
    try await core.waitUntilSleeping(1)
    core.receive(Self.sigterm)
    await core.advance(by: .milliseconds(3999))
    #expect(log.all == [])
    await core.advance(by: .milliseconds(1))
    try await core.untilIdle()
    #expect(log.all == ["cancelled"])
    #expect(observed.log.names.last == "terminated 0")
  }

  @Test func aTaskThatFailsEndsIt() async {
    let observed = await serving(configuration(.seconds(4)))
    let core = observed.core
    let gate = Gate()
    core.addTask {
      await gate.wait()
      throw Failure()
    }
    core.receive(Self.sigterm)
    gate.open()
    // Without the clock.
    let exit = await core.untilTerminated()
    #expect(exit.exitStatus == 1 && exit.report.cause.signal == .sigterm)
  }
}
