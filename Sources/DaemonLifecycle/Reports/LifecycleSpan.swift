// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd

/// What a report is of, as a whole: from when to when, and what there was beside hooks.
///
/// A class, since reports are passed on by many hands that do not look at it.
package final class LifecycleSpan: Sendable {
  package let event: String
  package let began: MonotonicTime
  package let ended: MonotonicTime
  /// What a termination could take, its exit grace included.
  package let budget: Duration?
  /// A second signal has made the budget what it is.
  package let isHurried: Bool
  /// What came before the first hook.
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
      /// The daemon was asked to end, and served on: ``LifecycleConfiguration/stopDelay``.
      case drain
      /// The transition under way when the end was asked for, by its name in the journal (`reload`): the part of it
      /// that had begun had to end first.
      case overtaken(String)
    }

    package let activity: Activity
    package let began: MonotonicTime
    package let ended: MonotonicTime
  }
}
