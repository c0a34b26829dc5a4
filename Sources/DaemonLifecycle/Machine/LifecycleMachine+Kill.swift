// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// Kills, which are no stops: the service manager restarts a daemon that another process has ended.
extension LifecycleMachine {
  /// Whether neither the service manager nor the daemon requested the termination, as far as is known.
  var isKilled: Bool {
    guard let rule = policy.killRule, let cause = registry.termination else { return false }
    return rule.isKill(cause) && !stop.isOrdered
  }

  /// Notes a signal from the service manager which, even after a kill, makes the end a stop.
  mutating func noteOrder(
    _ cause: LifecycleCause, at now: MonotonicTime, _ effects: inout Effects
  ) {
    guard policy.killRule?.isOrder(cause) == true else { return }
    stop.order()
    endQuestion(at: now, &effects)
  }

  /// Takes the service manager's job for the service; `nil` when there is none, or it could not be read.
  mutating func unitJobIsKnown(
    _ job: UnitJob?, at now: MonotonicTime, _ effects: inout Effects
  ) {
    stop.job = job
    endQuestion(at: now, &effects)
  }

  /// Requests the service manager's job, once, before the end counts as a kill: an `ExecStop=` may have sent the
  /// signal, and for a stop that was requested since, systemd sends no signal to a daemon that is stopping already.
  /// Returns false when it can't be read, or no time is left.
  mutating func asksForJob(
    _ report: LifecycleReport, at now: MonotonicTime, _ effects: inout Effects
  ) -> Bool {
    guard policy.killRule?.asksForJob == true, stop.ask(report, at: now) else { return false }
    effects.publish(.seemsKilled)
    return true
  }

  /// Ends the daemon with what is known now, if only the reply was missing.
  mutating func endQuestion(at now: MonotonicTime, _ effects: inout Effects) {
    if case .asking(let report, _, _) = stop.phase { conclude(report, at: now, &effects) }
  }
}
