// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

struct DeliveryID: Hashable, Sendable {
  /// Grows from delivery to delivery.
  let value: UInt64
}

/// One step being delivered: what remains to be called, what runs, what has ended.
struct Delivery: Sendable {
  /// One hook to call: the observer's, by its place among those.
  struct PlannedCall: Sendable {
    let observer: ObserverID
    let hook: Int
  }

  /// A delivery beside the transition under way, in a hook's time or a health check's.
  struct Outer: Sendable {
    /// The end of that time.
    let deadline: MonotonicTime
    /// The step whose part of the stop budget it may use.
    let budgetStep: LifecycleStep
  }

  /// What of it never changes: shared with its calls, so that neither is big.
  final class Constants: Sendable {
    let step: LifecycleStep
    let cause: LifecycleCause
    /// It began after the termination had.
    let isOfTermination: Bool
    /// The notification's type.
    let type: (any LifecycleNotification.Type)?
    let isSave: Bool
    let began: MonotonicTime
    /// All calls, in order.
    let calls: LifecycleAudience<PlannedCall>
    /// Who gets this one delivery's report: a poster.
    let post: PostID?
    /// `nil`: the registry's current step, of which there is at most one.
    let outer: Outer?

    init(
      _ plan: LifecycleRegistry.Plan, calls: LifecycleAudience<PlannedCall>, post: PostID?,
      outer: Outer?, began: MonotonicTime
    ) {
      step = plan.step
      cause = plan.cause
      isOfTermination = plan.isOfTermination
      type = plan.step.type
      isSave = plan.step.isSave
      self.began = began
      self.calls = calls
      self.post = post
      self.outer = outer
    }

    var isNested: Bool { outer != nil }
  }

  let id: DeliveryID
  let constants: Constants

  /// The first call that has not begun: all before have begun, were skipped or removed.
  private(set) var nextCall = 0
  /// The segment of `nextCall`.
  private var segment = 0
  private(set) var running: [CallID] = []
  private(set) var entries: [LifecycleReport.Entry] = []
  /// The entries of observers that are gone, which is one for each name.
  private var gone: [ObserverName: Int] = [:]
  /// No call in `running` has its `next` before this; it may be too early until the clock has come to it.
  private(set) var earliest = MonotonicTime.distantFuture

  /// - Parameter room: An empty list that was used before.
  init(_ id: DeliveryID, _ constants: Constants, room: consuming [CallID] = []) {
    self.id = id
    self.constants = constants
    running = room
  }

  var step: LifecycleStep { constants.step }
  var cause: LifecycleCause { constants.cause }
  var type: (any LifecycleNotification.Type)? { constants.type }
  var post: PostID? { constants.post }
  var outer: Outer? { constants.outer }
  var isOfTermination: Bool { constants.isOfTermination }
  var isNested: Bool { constants.isNested }
  var budgetStep: LifecycleStep { outer?.budgetStep ?? step }
  private var calls: LifecycleAudience<PlannedCall> { constants.calls }

  // MARK: What remains

  var waiting: ArraySlice<PlannedCall> { calls.members[nextCall...] }
  /// How many groups have not begun.
  var waitingGroups: Int { calls.groupCount(from: nextCall) }

  /// The calls of the next group, which begin now; `nil`: none is left.
  mutating func takeGroup() -> Range<Int>? {
    guard nextCall < calls.members.count else { return nil }
    while calls.range(of: segment).upperBound <= nextCall { segment += 1 }
    let first = nextCall
    let isConcurrent = calls.segment(segment).isConcurrent
    nextCall = isConcurrent ? calls.range(of: segment).upperBound : first + 1
    return first..<nextCall
  }

  /// Leaves out what has not begun.
  mutating func skipWaiting() { nextCall = calls.members.count }

  // MARK: What runs

  mutating func add(_ call: CallID, next: MonotonicTime) {
    running.append(call)
    note(next)
  }

  /// Returns the call that takes the index: the last one, so that a big group takes no longer for each.
  mutating func remove(at index: Int) -> CallID? {
    let last = running.removeLast()
    if running.isEmpty { earliest = .distantFuture }
    guard index < running.count else { return nil }
    running[index] = last
    return last
  }

  /// It is over: nothing runs, and the list can be used again.
  mutating func takeRoom() -> [CallID] {
    defer { running = [] }
    return running
  }

  /// A call's next deadline may be nearer than before.
  mutating func note(_ next: MonotonicTime) { earliest = min(earliest, next) }
  mutating func set(earliest: MonotonicTime) { self.earliest = earliest }

  // MARK: What has ended

  /// - Parameter began: By default, for what was not called, when the last one had ended.
  mutating func record(
    _ outcome: LifecycleReport.Outcome, of name: ObserverName, _ observer: ObserverID?,
    began: MonotonicTime? = nil, duration: Duration = .zero, text: String? = nil
  ) {
    // Not before: a hook begins the sooner.
    if entries.isEmpty { entries.reserveCapacity(constants.calls.members.count) }
    entries.append(
      LifecycleReport.Entry(
        notification: type, outcome: outcome, duration: duration, name: name, errorText: text,
        began: began ?? entries.last?.ended ?? constants.began, registration: observer?.value ?? 0))
  }

  /// Observers that are gone: one entry for all of one name.
  mutating func recordGone(_ name: ObserverName, _ count: Int) {
    if let index = gone[name] {
      entries[index].name = entries[index].name.adding(count)
    } else {
      gone[name] = entries.count
      record(.skipped(.gone), of: count > 1 ? name.adding(count - 1) : name, nil)
    }
  }
}
