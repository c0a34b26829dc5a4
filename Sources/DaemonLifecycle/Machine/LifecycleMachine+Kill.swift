// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// A kill is not a stop: the service manager starts again what somebody else has ended.
extension LifecycleMachine {
  /// Whether neither the service manager nor the daemon wanted the termination, as far as is known.
  var isKilled: Bool {
    guard let rule = policy.killRule, let cause = registry.termination else { return false }
    return rule.isKill(cause) && !stop.isOrdered
  }

  /// A signal from the service manager, even after a kill, makes the end a stop.
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

  /// Asks the service manager, once, before the end is taken for a kill: an `ExecStop=` may have sent the signal, and
  /// for a stop requested since, systemd sends none to a daemon that is stopping already. False: nobody to ask, or no
  /// time.
  mutating func asksForJob(
    _ report: LifecycleReport, at now: MonotonicTime, _ effects: inout Effects
  ) -> Bool {
    guard policy.killRule?.asksForJob == true, stop.ask(report, at: now) else { return false }
    effects.publish(.seemsKilled)
    return true
  }

  /// Ends the daemon, if only the answer was missing, by what is known now.
  mutating func endQuestion(at now: MonotonicTime, _ effects: inout Effects) {
    if case .asking(let report, _, _) = stop.phase { conclude(report, at: now, &effects) }
  }
}
