// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd

/// The event that a report covers: its beginning and end, and what happened besides hooks.
///
/// It is a class, since reports are passed on often and this is rarely read.
package final class LifecycleSpan: Sendable {
  package let event: String
  package let began: MonotonicTime
  package let ended: MonotonicTime
  /// The time that the termination had, the exit grace included; `nil` for other events.
  package let budget: Duration?
  /// Whether a second signal shortened the budget.
  package let isHurried: Bool
  /// What happened before the first hook.
  package let prelude: [Prelude]

  init(
    event: String, began: MonotonicTime, ended: MonotonicTime, budget: Duration? = nil,
    isHurried: Bool = false, prelude: [Prelude] = []
  ) {
    self.event = event
    self.began = began
    self.ended = ended
    self.budget = budget
    self.isHurried = isHurried
    self.prelude = prelude
  }

  package struct Prelude: Sendable {
    package enum Activity: Sendable {
      /// The daemon went on serving after the stop was requested: ``LifecycleConfiguration/stopDelay``.
      case drain
      /// The transition that was under way when the end was requested, by its name in the journal (`reload`): the part
      /// of it that had begun had to end first.
      case overtaken(String)
    }

    package let activity: Activity
    package let began: MonotonicTime
    package let ended: MonotonicTime
  }
}
