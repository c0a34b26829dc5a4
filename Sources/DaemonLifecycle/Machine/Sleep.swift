// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The state of a sleep of the machine, for which logind waits.
struct Sleep: Sendable {
  /// Whether a sleep was announced, and logind was not notified yet that the machine may sleep.
  var isMachineWaiting = false
  /// The time at which logind stops waiting for an announced sleep. Used once, since the next sleep may not be
  /// delayed.
  var end: MonotonicTime?
  /// Set while a sleep is delivered that logind waits for.
  var budget: StopBudget?

  mutating func begins(_ audience: StopBudget.Audience, at now: MonotonicTime) {
    guard let end = end.take(), end > now else { return }
    budget = StopBudget(from: now, until: end, audience)
  }
}
