// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

typealias CallID = SlotHandle

/// One call of one hook, from the moment when it is enqueued; or the wait for a work.
struct Call: Sendable {
  /// The progress of the call, as reported by its task. It only moves forward.
  enum Progress: Sendable, Comparable {
    /// It waits for a thread.
    case enqueued
    /// It has a task, which waits for the observer's executor.
    case entering
    /// The hook runs.
    case begun
  }

  /// The next action of the clock. It only moves forward.
  enum Limit: Sendable {
    /// It is cancelled at its deadline.
    case deadline
    /// It was cancelled, and is abandoned then.
    case cancelled(abandonedAt: MonotonicTime)
    /// The delivery went on without it; it has not ended.
    case abandoned
  }

  /// Which deliveries wait for it, or have.
  enum Wait: Sendable {
    /// Its own.
    case own
    /// A later one, beside which it runs on: it has had its turn.
    case later
    /// None, so far: its own has gone on without it.
    case nobody
    /// A stop's, once more.
    case again
  }

  private(set) var delivery: DeliveryID
  /// The constants of the delivery that it began in, which outlive the delivery.
  let constants: Delivery.Constants
  let member: Member
  /// The index of the hook among the member's.
  let hook: Int
  /// The object that calls the hook and cancels it, kept for the shell; `nil` until the shell has made it.
  var caller: (any AnyObject & Sendable)?
  let began: MonotonicTime
  /// The deadline: not before `began`; for a nested call not after the outer one's.
  private(set) var deadline: MonotonicTime
  /// The time from its cancellation to its abandonment.
  private(set) var grace: Duration
  /// How much more time of the stop it was granted.
  var granted = Duration.zero
  private(set) var progress: Progress
  private(set) var limit = Limit.deadline
  private(set) var wait = Wait.own
  /// Its turn, which no call has beside it that has had another. It wraps around.
  var turn: Int32 = 0
  /// Its index in its delivery's `running`.
  var runningIndex = 0

  init(
    of constants: Delivery.Constants, in delivery: DeliveryID, _ member: Member,
    hook: Int = 0, began: MonotonicTime, time: CallTime, progress: Progress = .enqueued
  ) {
    self.delivery = delivery
    self.constants = constants
    self.member = member
    self.hook = hook
    self.began = began
    deadline = time.deadline
    grace = time.grace
    self.progress = progress
  }

  var step: LifecycleStep { constants.step }
  var observer: ObserverID { member.id }
  var name: ObserverName { member.name }
  var isCancelled: Bool { if case .deadline = limit { false } else { true } }
  /// Whether a hook that saves runs.
  var isSaving: Bool { constants.isSave && progress == .begun }
  var isAbandoned: Bool { if case .abandoned = limit { true } else { false } }

  /// The time of the clock's next action.
  var next: MonotonicTime {
    switch limit {
    case .deadline: deadline
    case .cancelled(let end): end
    case .abandoned: .distantFuture
    }
  }

  /// Moves forward. Returns false once it is abandoned: a hook that had not begun by then never does.
  mutating func move(to progress: Progress) -> Bool {
    guard !isAbandoned, progress > self.progress else { return false }
    self.progress = progress
    return true
  }

  mutating func abandon() {
    limit = .abandoned
    if wait == .own { wait = .nobody }
  }

  /// Whether it was abandoned before the stop, and still runs: it may be in a transaction. A health check has nothing to end.
  var isLeftBehind: Bool {
    wait == .nobody && progress == .begun && !constants.isOfTermination && !step.isHealthCheck
  }

  /// It runs on beside another delivery.
  mutating func join(_ delivery: DeliveryID) {
    self.delivery = delivery
    if wait == .own { wait = .later }
  }

  /// A stop waits for it once more, with the time that it has.
  mutating func join(_ delivery: DeliveryID, grace: Duration) {
    (self.delivery, deadline, self.grace) = (delivery, .distantFuture, grace)
    (limit, wait, granted) = (.deadline, .again, .zero)
  }

  // MARK: Time

  mutating func cancel(at now: MonotonicTime, grace: Duration? = nil) {
    if let grace { self.grace = grace }
    limit = .cancelled(abandonedAt: now.advanced(by: self.grace))
  }

  /// Shortens the deadline to a budget that ends before it.
  mutating func limit(to budget: CallTime) {
    grace = min(grace, budget.grace)
    switch limit {
    case .deadline: deadline = max(began, min(deadline, budget.deadline))
    case .cancelled(let end): limit = .cancelled(abandonedAt: min(end, budget.end))
    case .abandoned: break
    }
  }

  /// Lengthens the deadline, up to its own, to a budget that has grown. In a call that is waited for again it has none.
  mutating func lengthen(to budget: CallTime, own: MonotonicTime) {
    let longer = wait == .again ? budget.deadline : min(own, budget.deadline)
    if longer > deadline, budget.end > deadline.advanced(by: grace) {
      (deadline, grace) = (longer, budget.grace)
    }
  }

  /// Extends the deadline. A limit that is nearer than the deadline does not shorten it. The grace must end with the
  /// budget, if there is one.
  mutating func extend(to newDeadline: MonotonicTime, grace limit: Duration?) {
    deadline = max(deadline, newDeadline)
    if let limit { grace = min(grace, limit) }
  }
}

/// The time at which a call is cancelled, and the grace that follows: its own, or the limit that a budget sets.
struct CallTime: Sendable {
  let deadline: MonotonicTime
  let grace: Duration
  var end: MonotonicTime { deadline.advanced(by: grace) }
}
