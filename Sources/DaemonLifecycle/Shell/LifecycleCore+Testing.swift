package import DaemonSystemd
import Synchronization

// What the test kit needs of a core. The mock is the same core with a clock that a test moves, no sources,
// and no process to end.
extension LifecycleCore {
  package convenience init(
    testing configuration: LifecycleConfiguration, initialState: LifecycleState,
    recorder: any LifecycleRecorder, notifyAddress: String?,
    preservation: @escaping @Sendable () throws(SystemdError) -> Preservation,
    exitProcess: @escaping @Sendable (Int32) -> Void
  ) {
    let log = LifecycleLog(journal: nil, logsProblems: configuration.logsProblems)
    var sinks: [any LifecycleSink] = [log]
    if let notifyAddress, let socket = try? NotifySocket(address: notifyAddress) {
      sinks.append(
        NotifySink(socket, sendsStatus: configuration.systemd.sendsStatus, waits: true) {
          log.warn($0)
        })
    }
    if let file = configuration.livenessFile {
      sinks.append(LivenessSink(file) { log.warn($0) })
    }
    self.init(
      configuration: configuration, initialState: initialState, time: .virtual(VirtualTime()),
      executor: HookExecutor(endsWhenIdle: true),
      recorder: recorder, sinks: sinks,
      readiness: configuration.readinessFile.map { ReadinessMarker($0) { log.warn($0) } },
      // The mock's service manager is process 1, and says by `setUnitJob` what it does.
      killRule: configuration.systemd.exitsWithFailureWhenKilled
        ? KillRule(superiors: [1], asksForJob: false) : nil,
      preservation: PreservationSlot(preservation),
      exitProcess: exitProcess)
    // A daemon at work has said that it is ready.
    guard initialState != .launching else { return }
    change { state, now in
      state.handle(.armed, at: now)
      state.effects.publish(.launched(state.machine.snapshot))
    }
  }

  package func send(_ event: LifecycleEvent) { receive(event) }

  package func event(for signal: UnixSignal, cause: LifecycleCause) -> LifecycleEvent? {
    configuration.signals[signal]?.event(cause: cause)
  }

  @discardableResult
  package nonisolated(nonsending) func launchForTesting() async -> LifecycleReport {
    await launch()
  }

  package func shutDown() { close() }

  package var exit: LifecycleExit? { state.withLock { $0.machine.stop.exit } }

  /// Returns when nothing is being delivered and nothing waits to be, except behind a hold.
  package nonisolated(nonsending) func untilIdle() async {
    await withCheckedContinuation { continuation in
      self.change { state, _ in state.idleWaiters.append(continuation) }
    }
  }

  /// Returns when `count` tasks or more sleep on the clock.
  package nonisolated(nonsending) func untilSleeping(_ count: Int) async {
    await withCheckedContinuation { continuation in
      self.change { state, _ in
        state.timerWaiters.append((count, continuation))
        self.wakeTimerWaiters(&state)
      }
    }
  }

  func wakeTimerWaiters(_ state: inout State) {
    let count = state.timers.count
    for waiter in state.timerWaiters where waiter.count <= count {
      state.outbox.append { waiter.continuation.resume() }
    }
    state.timerWaiters.removeAll { $0.count <= count }
  }

  /// Moves the virtual clock from timer to timer, letting what each wakes run before the next.
  package nonisolated(nonsending) func advance(by duration: Duration) async {
    guard case .virtual(let time) = time else { return }
    let target = time.now.advanced(by: duration)
    await untilQuiet(sleeping: sleeping)
    while let next = state.withLock({ nextDeadline($0) }), next <= target {
      let sleeping = sleeping
      time.advance(to: next)
      timePassed()
      await untilQuiet(sleeping: sleeping)
    }
    time.advance(to: target)
    await untilQuiet(sleeping: sleeping)
  }

  private var sleeping: Int { state.withLock { $0.timers.count } }

  /// Hooks have run as far as they can, and what was woken sleeps again, as a loop does.
  ///
  /// What else a woken task does on the cooperative pool can't be seen: it is given turns, and up to a
  /// fifth of a second to sleep again. A hook that blocks its thread is given as long.
  private nonisolated(nonsending) func untilQuiet(sleeping count: Int) async {
    let patience = MonotonicTime.now().advanced(by: .milliseconds(200))
    var turns = 0
    while turns < 20 || !executor.isQuiet || sleeping < count {
      if turns >= 20, MonotonicTime.now() > patience { return }
      await Task.detached(priority: .background) { await Task.yield() }.value
      turns += 1
    }
  }

  /// A sentence for each thing that has not come to its end.
  package var pending: [String] {
    state.withLock { state in
      var pending = state.machine.pending
      if state.timers.count > 0 { pending.append("\(state.timers.count) sleeping on the clock") }
      return pending
    }
  }
}

extension LifecycleMachine {
  fileprivate var pending: [String] {
    var pending: [String] = []
    for call in calls.order.flatMap({ calls[$0].running }).compactMap({ calls.find($0) }) {
      pending.append("\(call.name) is still in its hook for \(call.step.name)")
    }
    for call in calls.unfinished.values.joined().compactMap({ calls.find($0) }) {
      pending.append(
        "\(call.name) has not ended its hook for \(call.step.name), which was abandoned")
    }
    if stop.isDraining { pending.append("the drain delay is not over") }
    if registry.isHeld { pending.append("deliveries are held back") }
    if !registry.isIdle, calls.order.isEmpty { pending.append("an event has not been delivered") }
    return pending
  }
}
