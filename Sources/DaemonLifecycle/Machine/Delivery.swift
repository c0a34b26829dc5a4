// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

struct DeliveryID: Hashable, Sendable {
  /// A number that grows with each delivery.
  let value: UInt64
}

/// The delivery of one step: the calls that remain, those that run, and the entries of those that have ended.
struct Delivery: Sendable {
  /// A hook to call: the observer, and the index of the hook.
  struct PlannedCall: Sendable {
    let observer: ObserverID
    let hook: Int
    /// Whether it begins together with the call before it: a group is a call, and all that begin together with it.
    let isTogether: Bool
  }

  /// The frame of a delivery beside the transition under way, within a hook's time or a health check's.
  struct Outer: Sendable {
    /// The end of that time.
    let deadline: MonotonicTime
    /// The step whose time of a stop it may use.
    let budgetStep: LifecycleStep
  }

  /// The part of a delivery that never changes, shared with its calls, so that neither is big.
  final class Constants: Sendable {
    let step: LifecycleStep
    let cause: LifecycleCause
    /// Whether it began after the termination had.
    let isOfTermination: Bool
    /// The notification's type in reports.
    let type: any LifecycleNotification.Type
    let isSave: Bool
    /// The change of state of the observers that it reaches.
    let change: NotificationKind.Change
    let began: MonotonicTime
    /// All calls, in order.
    let calls: [PlannedCall]
    /// The frame; `nil` for the registry's current step, of which there is at most one.
    let outer: Outer?

    init(
      _ step: LifecycleStep, _ cause: LifecycleCause, calls: [PlannedCall], outer: Outer?,
      isOfTermination: Bool, began: MonotonicTime
    ) {
      self.step = step
      self.cause = cause
      self.isOfTermination = isOfTermination
      type = step.reportedType
      isSave = step.isSave
      change = step.change
      self.began = began
      self.calls = calls
      self.outer = outer
    }

    var isNested: Bool { outer != nil }
    var budgetStep: LifecycleStep { outer?.budgetStep ?? step }
  }

  let id: DeliveryID
  let constants: Constants

  /// The first call that has not begun: all before have begun, were skipped or removed.
  private(set) var nextCall = 0
  /// The turn under way, when it began, and how many of its calls run. All others that run have had their turn.
  private(set) var turn: Int32
  private(set) var turnBegan: MonotonicTime
  private var inTurn = 0
  /// When the calls in turn are waited for no longer; the distant future: until they have ended.
  private(set) var turnEnd = MonotonicTime.distantFuture
  /// Whether the next step begins beside calls that have had their turn.
  private var isFollowed = false
  private(set) var running: [CallID] = []
  /// How many of them save.
  private var saves = 0
  /// The most time that a call of the group under way was granted.
  var granted = Duration.zero
  private(set) var entries: [LifecycleReport.Entry] = []
  /// A lower bound of `turnEnd` and of `next` of all calls in `running`; it may be too early until the clock reaches it.
  private(set) var earliest = MonotonicTime.distantFuture

  /// - Parameters:
  ///   - turn: The last one of an earlier delivery, whose calls may run on beside this.
  ///   - list: An empty list that was used before.
  init(
    _ id: DeliveryID, _ constants: Constants, after turn: Int32 = 0, list: consuming [CallID] = []
  ) {
    self.id = id
    self.turn = turn &+ 1
    self.constants = constants
    turnBegan = constants.began
    running = list
  }

  var step: LifecycleStep { constants.step }
  var cause: LifecycleCause { constants.cause }
  var type: any LifecycleNotification.Type { constants.type }
  var post: LifecyclePost? { if case .posted(let post) = step { post } else { nil } }
  var outer: Outer? { constants.outer }
  var isOfTermination: Bool { constants.isOfTermination }
  var isNested: Bool { constants.isNested }
  var budgetStep: LifecycleStep { constants.budgetStep }
  private var calls: [PlannedCall] { constants.calls }

  // MARK: Pending calls

  var waiting: ArraySlice<PlannedCall> { calls[nextCall...] }

  /// Returns the index of an observer's call, if its turn has come.
  func begun(of observer: ObserverID) -> Int? {
    calls[..<nextCall].firstIndex { $0.observer == observer }
  }

  /// Whether the calls in turn have ended, or had their time, and others come next: in a stop at last the saves, beside
  /// which only saves may run.
  func mayAdvance(at now: MonotonicTime) -> Bool {
    if running.isEmpty { return true }
    if isFollowed || nextCall < calls.count { return inTurn == 0 || turnEnd <= now }
    return turnEnd <= now && saves == running.count
  }

  /// Takes the calls of the next group, or all that are left, whose turn begins now; returns `nil` when none is left.
  mutating func takeGroup(all: Bool, at now: MonotonicTime) -> Range<Int>? {
    let (first, calls) = (nextCall, calls)
    guard first < calls.count else { return nil }
    repeat { nextCall += 1 } while nextCall < calls.count && (all || calls[nextCall].isTogether)
    (turn, turnBegan, inTurn, granted) = (turn &+ 1, now, 0, .zero)
    return first..<nextCall
  }

  mutating func setTurnEnd(_ time: MonotonicTime, isFollowed: Bool) {
    (turnEnd, self.isFollowed) = (time, isFollowed)
    note(time)
  }

  /// Skips the calls that have not begun.
  mutating func skipWaiting() { nextCall = calls.count }

  // MARK: Running calls

  mutating func add(_ call: CallID, next: MonotonicTime, turn: Int32, isSave: Bool) {
    running.append(call)
    count(1, turn, isSave)
    note(next)
  }

  @inline(__always) private mutating func count(_ sign: Int, _ turn: Int32, _ isSave: Bool) {
    if turn == self.turn { inTurn += sign }
    if isSave { saves += sign }
  }

  /// Removes a running call. Returns the call that takes its index: the last one, so that the time does not depend on
  /// the group's size.
  mutating func remove(at index: Int, turn: Int32, isSave: Bool) -> CallID? {
    let last = running.removeLast()
    count(-1, turn, isSave)
    if running.isEmpty { earliest = .distantFuture }
    guard index < running.count else { return nil }
    running[index] = last
    return last
  }

  /// Ends the delivery, and returns its list for reuse.
  mutating func takeList() -> [CallID] {
    defer { running = [] }
    return running
  }

  /// Notes a call's next deadline, which may be nearer than before.
  mutating func note(_ next: MonotonicTime) { earliest = min(earliest, next) }
  mutating func set(earliest: MonotonicTime, at now: MonotonicTime) {
    self.earliest = turnEnd <= now ? earliest : min(earliest, turnEnd)
  }

  // MARK: Ended calls

  /// - Parameters:
  ///   - own: The type of the call's notification; `nil` for the delivery's.
  ///   - began: When the call began, or would have.
  mutating func record(
    _ outcome: LifecycleReport.Outcome, of name: ObserverName, _ observer: ObserverID?,
    for own: (any LifecycleNotification.Type)? = nil,
    began: MonotonicTime, duration: Duration = .zero, failure: Failure? = nil
  ) {
    // Not before: a hook begins the sooner.
    if entries.isEmpty { entries.reserveCapacity(calls.count) }
    entries.append(
      LifecycleReport.Entry(
        notification: own ?? type, outcome: outcome, duration: duration,
        name: name, failure: failure, began: began, registration: observer?.value ?? 0))
  }
}
