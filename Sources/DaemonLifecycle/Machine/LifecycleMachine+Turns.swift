// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// How long a call has in a stop, and how long it is waited for. All before the saves must be over when their reserve begins,
// and the saves a moment before the end: `StopBudget`. Until then each observer is called in its order, and its call may take
// what it needs, up to its limit. It is waited for as long as the limits of the later calls still fit, and at least for half
// of the time that is left; then the next is called beside it. A moment before the end all that are left are called, together.
//
// A half, since a slow call may need the next observer, as a server its database. A quarter would leave those behind it more.
extension LifecycleMachine {
  /// Whether calls have to be over at some time: in a drain, a stop, and a sleep that logind waits for.
  @inline(__always) var isLimited: Bool { stop.budget != nil || sleep.budget != nil }

  /// Returns when the calls of a step must be over; `nil` without such a time.
  private func end(of step: LifecycleStep) -> MonotonicTime? {
    // A health check stands beside a sleep, and has its own deadline.
    guard let budget = stop.budget ?? (step.isHealthCheck ? nil : sleep.budget) else { return nil }
    return switch step.kind {
    case .shouldSaveState: budget.endOfSaves
    case .willTerminate: budget.end
    case .willSleep where stop.budget == nil: budget.end
    default: budget.endBeforeSaves
    }
  }

  /// Returns the limit of the calls of a step.
  mutating func limit(of step: LifecycleStep) -> CallTime? {
    guard let end = end(of: step) else { return nil }
    let grace = policy.grace(in: max(.zero, now.duration(to: end)))
    return CallTime(deadline: end.advanced(by: .zero - grace), grace: grace)
  }

  // MARK: Turns

  /// Whether a stop goes on beside the calls that are left of a delivery.
  private func isBeforeSaves(_ id: DeliveryID) -> Bool {
    isTerminating && registry.state != .terminated && !isClosed && !calls[id].isNested
      && (!calls[id].isOfTermination || calls[id].step.endsWork)
  }

  /// Returns when a delivery must be over, and when all that are left are called.
  private func end(of id: DeliveryID, _ isBeforeSaves: Bool) -> (
    MonotonicTime, last: MonotonicTime
  )? {
    let step = isBeforeSaves ? .workEnds : calls[id].budgetStep
    guard var end = end(of: step), let budget = stop.budget ?? sleep.budget else { return nil }
    end = min(end, calls[id].outer?.deadline ?? .distantFuture)
    return (end, end.advanced(byNanoseconds: -budget.moment))
  }

  func isLastCall(of id: DeliveryID) -> Bool {
    end(of: id, isBeforeSaves(id)).map { $0.last <= now } ?? false
  }

  /// Sets until when the calls in turn are waited for.
  mutating func setTurn(of id: DeliveryID) {
    guard calls.contains(id) else { return }
    let isBeforeSaves = isBeforeSaves(id)
    guard let (end, last) = end(of: id, isBeforeSaves) else { return }
    let began = max(calls[id].turnBegan, stop.start ?? calls[id].turnBegan)
    let time = max(0, last.nanoseconds - began.nanoseconds)
    if let others = limits(after: id, isBeforeSaves, upTo: time / 2) {
      let turnEnd = began.advanced(byNanoseconds: time - others)
      calls[id].setTurnEnd(turnEnd, isFollowed: isBeforeSaves)
    } else {
      calls[id].setTurnEnd(isBeforeSaves ? end : .distantFuture, isFollowed: false)
    }
  }

  /// Returns the time that the calls still to come may take, in a delivery and in the steps after it, at least a moment
  /// each; `nil` if there are none.
  private mutating func limits(
    after id: DeliveryID, _ isBeforeSaves: Bool, upTo most: Int64
  ) -> Int64? {
    let moment = (stop.budget ?? sleep.budget)?.moment ?? 0
    var sum: Int64?
    func add(_ limit: Duration?) {
      let limit = (limit?.saturatedNanoseconds ?? policy.hookNanoseconds) + policy.graceNanoseconds
      // Each is at most the most, so that no sum overflows.
      sum = min(most, (sum ?? 0) + min(most, max(moment, limit)))
    }
    func add(_ calls: ArraySlice<Delivery.PlannedCall>, of step: LifecycleStep) {
      for call in calls where !call.isTogether {
        if let sum, sum >= most { return }
        add(registry.members[call.observer]?.limit(of: step))
      }
    }
    let waiting = isOvertaken(id) ? [] : calls[id].waiting
    add(waiting, of: calls[id].step)
    // Calls that wait in a pause would be counted twice.
    if isBeforeSaves, waiting.isEmpty {
      let paused = registry.receiversOfPause(areBusy: false)
      let pause = LifecycleStep.kind(.didEnterBackground)
      add(planCalls(of: pause, to: paused, isDryRun: true)[...], of: pause)
    }
    if isBeforeSaves, registry.endsWork, (sum ?? -1) < most {
      if !calls.leftBehind.isEmpty { add(nil) }
      add(callsToEndWork()[...], of: .workEnds)
    }
    return sum
  }

  mutating func callsToEndWork() -> [Delivery.PlannedCall] {
    planCalls(of: .workEnds, to: registry.receivers(of: .workEnds), isDryRun: true)
  }
}
