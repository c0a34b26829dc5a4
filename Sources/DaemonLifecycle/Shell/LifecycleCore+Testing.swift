// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd
import Synchronization

// The parts of a core that the test kit uses. The mock is the same core with a clock that a test moves, no part that is
// polled, and no process to end.
extension LifecycleCore {
  /// - Parameter pool: The executor of work in the foreground, for an exploration, which performs the jobs of
  ///   `takeReady` itself; `nil` for Swift's pool, and threads.
  package convenience init(
    testing configuration: LifecycleConfiguration, initialState: LifecycleState,
    seed: UInt64, pool: (any TaskExecutor)?, harness: any LifecycleHarness, notifyAddress: String?,
    preservation: @escaping @Sendable () throws(SystemdError) -> Preservation,
    exitProcess: @escaping @Sendable (Int32) -> Void
  ) {
    let log = LifecycleLog(
      journal: nil, logging: configuration.logging == .off ? .off : .problems,
      queue: configuration.logQueue)
    var wiring = LifecycleWiring(configuration.environment, isSupervised: false) { log.warn($0) }
    if let notifyAddress, let socket = try? NotifySocket(address: notifyAddress) {
      wiring.parts.append(NotifySink(socket, waits: true, warn: wiring.warn))
    }
    wiring.connect(configuration.interfaces.local)
    for problem in wiring.problems { log.warn(problem) }
    self.init(
      configuration: configuration, virtualTime: VirtualTime(seed: seed),
      executor: pool == nil
        ? HookExecutor(endsWhenIdle: true)
        : HookExecutor(endsWhenIdle: true, pool: pool, startThread: { _, _ in true }),
      harness: harness, parts: [log] + wiring.parts,
      preservation: PreservationSlot(preservation),
      exitProcess: exitProcess)
    // The others are not opened: the test asks for checks of health.
    for part in wiring.parts where part.showsReadiness { _ = try? part.open() }
    for follow in wiring.followers { follow(self) }
    switch initialState {
    case .launching, .foreground: break
    case .background: handle(.event(LifecycleEvent(.pause(for: .operator))))
    // Without observers it ends at once.
    case .terminated: handle(.event(LifecycleEvent(.terminate)))
    }
  }

  package var isReady: Bool { state.withLock { $0.machine.isReady } }

  @inline(never) var isHealthy: Bool {
    change { state, now in
      state.handle(.probed, at: now)
      return state.machine.isHealthy
    }
  }

  @inline(never) package var exit: LifecycleExit? { state.withLock { $0.machine.stop.exit } }

  /// Has the harness check whether a test's wait has ended.
  package func look() { change { _, _ in } }

  /// How many tasks sleep on the clock.
  package var sleeperCount: Int { state.withLock { $0.sleeperCount } }

  /// Takes a ready job. A call of the result performs it, isolated to an executor.
  package func takeReady() -> (@Sendable (UnownedSerialExecutor) -> Void)? {
    guard let item = executor.state.withLock({ $0.ready.popFirst() }) else { return nil }
    return { HookExecutor.perform(item, isolatedTo: $0) }
  }

  /// Whether nothing is being delivered, whether the daemon was asked to end, and the end of the next sleep.
  package var rest: (isIdle: Bool, isEnding: Bool, wakeUp: MonotonicTime?) {
    state.withLock { ($0.machine.isIdle, $0.machine.isTerminating, $0.timers.first) }
  }

  /// Whether hooks have run as far as they can, as far as the executor knows.
  package var isQuiet: Bool { executor.isQuiet }

  /// The next deadline of the virtual clock, up to `limit`.
  package func nextDeadline(until limit: MonotonicTime) -> MonotonicTime? {
    if virtualTime == nil { return nil }
    return state.withLock { nextDeadline($0) }.flatMap { $0 <= limit ? $0 : nil }
  }

  package func moveClock(to instant: MonotonicTime) { virtualTime?.advance(to: instant) }

  /// One sentence for each thing that is pending.
  package var pending: [String] {
    let now = now
    return state.withLock { state in
      var pending = state.machine.pending(at: now, isHeld: true, name: Self.nameAndType)
      if state.timers.count > 0 { pending.append("\(state.timers.count) sleeping on the clock") }
      return pending
    }
  }

  /// "Orders is in its hook for ShouldSaveState (SIGHUP …)"; `nil` when no hook is running.
  package var runningHook: String? {
    state.withLock { state in
      state.machine.running(name: Self.nameAndType).first.map { "\($0.name) is \($0.place)" }
    }
  }

  /// "a run of jobs, follower"; `nil` when no work runs.
  package var runningWork: String? {
    let names = state.withLock { $0.machine.works.all.filter { $0.run != nil }.map(\.name) }
    return names.isEmpty ? nil : "a run of " + names.map(\.description).joined(separator: ", ")
  }

  private static func nameAndType(of call: Call) -> String {
    guard case .given = call.name, let type = call.member.type
    else { return call.name.description }
    return "\(call.name) (\(type))"
  }

  /// Changes when a hook begins or ends.
  package var progress: some Equatable & Sendable { state.withLock { $0.machine.hooksUnderWay } }
}

extension LifecycleCore.State {
  var sleeperCount: Int { timers.count + machine.works.all.count(where: \.isWaiting) }
}
