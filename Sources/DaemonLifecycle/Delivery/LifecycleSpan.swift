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
    let activity: LifecycleTimeline.Activity
    let began: MonotonicTime
    let ended: MonotonicTime
  }
}

/// How a termination began: at that time, after the drain if there was one.
struct TerminationStart {
  let time: MonotonicTime
  /// The walk that was under way: what of it had begun had to end first.
  let overtaken: LifecycleWalk?
}

extension LifecycleCore {
  /// A termination is measured from when it was asked for.
  func span(of walk: WalkUnderWay, to now: MonotonicTime, _ state: borrowing State) -> LifecycleSpan
  {
    guard walk.kind == .termination, let budget = state.budget, let start = state.termination else {
      return LifecycleSpan(event: walk.kind.event, began: walk.began, ended: now)
    }
    var prelude: [LifecycleSpan.Prelude] = []
    if budget.began < start.time {
      prelude.append(.init(activity: .drain, began: budget.began, ended: start.time))
    }
    // Nobody was slow who took less.
    let wait = start.time.duration(to: walk.began)
    if let overtaken = start.overtaken, wait >= .milliseconds(1) {
      prelude.append(
        .init(activity: .overtaken(overtaken.event), began: start.time, ended: walk.began))
    }
    return LifecycleSpan(
      event: walk.kind.event, began: budget.began, ended: now,
      budget: budget.began.duration(to: budget.end) + budget.exitGrace,
      isHurried: budget.isHurried, prelude: prelude)
  }
}
