import DaemonSystemd

/// What a report is of, as a whole: from when to when, and what there was beside hooks.
///
/// A class, since reports are passed on by many hands that do not look at it.
final class LifecycleSpan: Sendable {
  /// What it is called: `terminate`.
  let event: String
  let began: MonotonicTime
  let ended: MonotonicTime
  /// What a termination could take, its exit grace included.
  let budget: Duration?
  /// A second signal has made the budget what it is.
  let isHurried: Bool
  /// What came before the first hook.
  let prelude: [Prelude]

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

  struct Prelude: Sendable {
    enum Activity: Sendable {
      /// The daemon was asked to end, and served on: ``LifecycleConfiguration/drainDelay``.
      case drain
      /// The transition under way when the end was asked for, by its name in the journal (`reload`): the part of it
      /// that had begun had to end first.
      case overtaken(String)
    }

    let activity: Activity
    let began: MonotonicTime
    let ended: MonotonicTime
  }
}
