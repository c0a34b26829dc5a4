import DaemonSystemd

// A kill is not a stop: the service manager starts again what somebody else has ended.
extension LifecycleMachine {
  /// Whether the termination is the doing of neither the service manager nor the daemon, as far as that is known.
  var isKilled: Bool {
    guard let rule = policy.killRule, let cause = registry.termination else { return false }
    return rule.isKill(cause) && !stop.isOrdered
  }

  /// The service manager may also speak after the kill: from then on the end is what it wants.
  mutating func noteOrder(
    _ cause: LifecycleCause, at now: MonotonicTime, _ effects: inout Effects
  ) {
    guard policy.killRule?.isOrder(cause) == true else { return }
    stop.order()
    endQuestion(at: now, &effects)
  }

  /// What the service manager is doing with the service; `nil`: nothing, or it could not be asked.
  mutating func unitJobIsKnown(
    _ job: UnitJob?, at now: MonotonicTime, _ effects: inout Effects
  ) {
    stop.job = job
    endQuestion(at: now, &effects)
  }

  /// Asks the service manager, once, before the end is taken for a kill: an `ExecStop=` may have sent the signal, and a
  /// stop that was requested since sends none to a daemon that is stopping already. False: there is nobody to ask, or no
  /// time.
  mutating func asksForJob(
    _ report: LifecycleReport, at now: MonotonicTime, _ effects: inout Effects
  ) -> Bool {
    guard policy.killRule?.asksForJob == true, stop.ask(report, at: now) else { return false }
    effects.publish(.seemsKilled)
    return true
  }

  /// With what is known now.
  mutating func endQuestion(at now: MonotonicTime, _ effects: inout Effects) {
    if case .asking(let report, _, _) = stop.phase { conclude(report, at: now, &effects) }
  }
}
