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
  package let prelude: [Prelude]

  var duration: Duration { began.duration(to: ended) }

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

  /// An activity before the first hook: the drain, or the part of a transition that had begun and had to end first.
  package struct Prelude: Sendable {
    package let name: String
    package let words: String
    package let began: MonotonicTime
    package let ended: MonotonicTime
  }
}
