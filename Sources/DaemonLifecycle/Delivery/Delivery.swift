/// One step being delivered: what remains to be called, what runs, what has ended.
///
/// Not Sendable by itself: everything that changes is changed by the core under its lock, and all else is
/// constant.
final class Delivery: @unchecked Sendable {
  /// One hook to call.
  struct Planned: Sendable {
    let entry: ObserverEntry
    let hook: Hook
  }

  let step: LifecycleStep
  /// The notification's type.
  let type: (any LifecycleNotification.Type)?
  let cause: LifecycleCause
  let began: MonotonicTime
  /// All calls, in order.
  let calls: LifecycleAudience<Planned>
  /// Who awaits this one delivery's report: a poster.
  let waiter: CheckedContinuation<LifecycleReport, Never>?

  /// When a hook has posted this: the end of that hook's time. Such a delivery is nested: it stands beside
  /// the registry's current step.
  let outerDeadline: MonotonicTime?
  var isNested: Bool { outerDeadline != nil }
  /// The step whose part of the stop budget it may use: its own, or that of the hook that posted it.
  let budgetStep: LifecycleStep
  /// It began after the termination had.
  let isOfTermination: Bool

  /// Where the core keeps it; `nil` once it has ended.
  var place: Int?
  var isUnderWay: Bool { place != nil }
  /// The first call that has not begun.
  var nextCall = 0
  private(set) var running: [HookRun] = []
  var entries: [LifecycleReport.Entry] = []
  /// The entries of observers that are gone, which is one for each name.
  private var gone: [ObserverEntry.Name: Int] = [:]
  /// No call that runs has its next deadline before this; exact again after `findDeadline()`.
  private(set) var earliestDeadline = MonotonicTime.distantFuture

  init(
    plan: LifecycleRegistry.Plan, calls: LifecycleAudience<Planned>,
    began: MonotonicTime, waiter: CheckedContinuation<LifecycleReport, Never>?,
    outer: (deadline: MonotonicTime, budgetStep: LifecycleStep)?
  ) {
    self.calls = calls
    self.began = began
    self.waiter = waiter
    step = plan.step
    type = plan.step.type
    cause = plan.cause
    isOfTermination = plan.isOfTermination
    outerDeadline = outer?.deadline
    budgetStep = outer?.budgetStep ?? plan.step
    entries.reserveCapacity(calls.members.count)
  }

  /// Observers that are gone: one entry for all of one name.
  func addGone(_ name: ObserverEntry.Name, _ count: Int, _ entry: () -> LifecycleReport.Entry) {
    if let index = gone[name] {
      entries[index].name = entries[index].name.adding(count)
      return
    }
    gone[name] = entries.count
    entries.append(entry())
    if count > 1 { entries[entries.count - 1].name = name.adding(count - 1) }
  }

  // MARK: What remains

  /// The calls that have not begun.
  var waiting: ArraySlice<Planned> { calls.members[nextCall...] }

  /// How many groups have not begun.
  var waitingGroups: Int { calls.groupCount(from: nextCall) }

  /// Leaves out what has not begun.
  func skipWaiting() { nextCall = calls.members.count }

  // MARK: What runs

  func add(_ run: HookRun) {
    run.slot = running.count
    running.append(run)
    noteDeadline(of: run)
  }

  func remove(_ run: HookRun) {
    // The last one takes the place, so that a big group takes no longer for each.
    let last = running.removeLast()
    if last !== run {
      last.slot = run.slot
      running[run.slot] = last
    }
    if running.isEmpty { earliestDeadline = .distantFuture }
  }

  func runs(_ run: HookRun) -> Bool {
    running.indices.contains(run.slot) && running[run.slot] === run
  }

  /// The run's next deadline may be nearer than before.
  func noteDeadline(of run: HookRun) { earliestDeadline = min(earliestDeadline, run.next) }

  func findDeadline() { earliestDeadline = running.map(\.next).min() ?? .distantFuture }
}
