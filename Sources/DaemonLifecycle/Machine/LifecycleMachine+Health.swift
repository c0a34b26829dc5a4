// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// Checks of health.
extension LifecycleMachine {
  /// Begins a check, which ends in a ping if all is well.
  mutating func watchdogTick(_ stall: Duration) {
    // The stop has its own time limit, and being killed for a blocked pool would prevent the save.
    if isTerminating || stop.isDraining { return effects.publish(.healthy) }
    guard health.isArmed, health.period != nil else { return }
    if stall > .zero, health.forgive(stall, at: now) { effects.publish(.healthy) }
    if health.isChecking {
      effects.healthRound = health.unasked
      return
    }
    guard health.nextTickChecks(after: stall) || !stalls.isEmpty else {
      return effects.publish(.healthy)
    }
    checkHealth(LifecycleCause(.watchdog))
  }

  /// A probe has asked: begins a check if there was none for a while.
  mutating func probed() {
    if !stop.isDraining, health.isDue(at: now) { checkHealth(LifecycleCause(.api)) }
  }

  /// The answer to a probe. A stop has its own limit.
  var isHealthy: Bool {
    !health.isArmed || isTerminating || stop.isDraining
      || health.isHealthy(at: now) && stalls.isEmpty
  }

  /// Checks the observers, beside the transition under way, and has the shell check Swift's executors.
  mutating func checkHealth(_ cause: LifecycleCause) {
    guard !isTerminating, registry.state != .terminated else { return }
    let isNew = health.begin(at: now) != nil
    // Also for a check that is under way: there may have been no free thread before.
    effects.healthRound = health.unasked
    guard isNew else { return }
    let patience = health.period.map { $0 / 2 } ?? policy.hookTimeout
    let step = LifecycleStep.kind(.checkHealth)
    begin(step, cause, outer: .init(deadline: now.advanced(by: patience), budgetStep: step))
  }
}
