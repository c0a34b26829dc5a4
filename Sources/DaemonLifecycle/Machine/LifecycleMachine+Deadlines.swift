// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// The times at which calls are cancelled and abandoned, and their changes.
extension LifecycleMachine {
  /// A shorter time than this is not worth a call.
  private static let leastNanoseconds: Int64 = 1_000_000

  /// Returns the time of a call that begins now; `nil` when no time is left for it.
  ///
  /// Inlined with what it calls, or the compiler copies the machine, which is 1.3 kB, for each call.
  @inline(__always) mutating func callTime(
    of member: Member, in id: DeliveryID, of constants: Delivery.Constants
  ) -> CallTime? {
    let own = ownDeadline(of: member, constants.step, from: now)
    let outer = constants.outer?.deadline ?? .distantFuture
    // Nearly always there is no limit.
    let budget = isLimited ? limit(of: constants.budgetStep) : nil
    let limit = min(budget?.deadline ?? .distantFuture, outer)
    guard now.advanced(byNanoseconds: Self.leastNanoseconds) <= limit else {
      // Work is cancelled all the same.
      if case .workEnds = constants.step { return CallTime(deadline: now, grace: hurriedGrace) }
      guard constants.step.isHealthCheck, let end = health.patience(after: outer, at: now)
      else { return nil }
      return CallTime(deadline: end, grace: policy.cancellationGrace)
    }
    return CallTime(
      deadline: min(own, limit), grace: budget?.grace ?? policy.cancellationGrace)
  }

  /// Returns the deadline of a call where there is no budget.
  @inline(__always) private func ownDeadline(
    of member: Member, _ step: LifecycleStep, from began: MonotonicTime
  ) -> MonotonicTime {
    member.limit(of: step).map { began.advanced(by: $0) }
      ?? began.advanced(byNanoseconds: policy.hookNanoseconds)
  }

  // MARK: Warnings

  /// Warns of limits that a stop would cut off, when that is known rather than when it happens: once the launch has ended,
  /// and when a stop has another time than before.
  ///
  /// - Parameter newcomer: An observer that was added later. Its limit is compared with the whole time before the save: to
  ///   compare it with all others would cost each the more, the more there are.
  mutating func warnOfLimits(of newcomer: Member? = nil) {
    guard hasOwnLimits, registry.state != .launching, !isTerminating else { return }
    // Computed once for all newcomers.
    if let newcomer, let timeBeforeSaves { return warnOfLimit(of: newcomer, in: timeBeforeSaves) }
    var budget = StopBudget(policy, allowed: stop.allowed, from: now)
    budget.audience = audience(of: .willTerminate)
    var left = max(.zero, now.duration(to: budget.endBeforeSaves))
    timeBeforeSaves = left
    if let newcomer { return warnOfLimit(of: newcomer, in: left) }
    // As in a stop in which every observer with a limit takes its turn, also one that is in the background now.
    var turn = Duration.zero
    let pause = LifecycleStep.kind(.didEnterBackground)
    let all = registry.receivers(of: pause) { _ in true }
    for call in planCalls(of: pause, to: all, isDryRun: true) + callsToEndWork() {
      if !call.isTogether { (left, turn) = (left - turn, .zero) }
      guard let member = registry.members[call.observer], let limit = member.timeout else {
        continue
      }
      turn = max(turn, min(limit + policy.cancellationGrace, left / 2))
      warnOfLimit(of: member, in: left)
    }
  }

  private mutating func warnOfLimit(of member: Member, in left: Duration) {
    let time = left - policy.grace(in: left)
    guard let timeout = member.timeout, timeout > time else { return }
    (shortestSaid, longestSaid) = (min(timeout, shortestSaid), max(timeout, longestSaid))
    effects.publish(
      .warning(
        "\(member.name) may take \(timeout.forReading), but a stop leaves only \(time.forReading) for it. Raise"
          + " the stop's time (TimeoutStopSec=, a container's grace period), or lower the limit or the save reserve."
      ))
  }

  /// Limits running calls to the budget. They keep an earlier deadline, unless that is due to a budget that has grown.
  mutating func limitRunning(hasGrown: Bool = false) {
    for id in calls.deliveryIDs where !hasGrown || !calls[id].isNested {
      for call in calls[id].running {
        guard let limit = limit(of: calls[call].constants.budgetStep) else { continue }
        let own = ownDeadline(of: calls[call].member, calls[call].step, from: calls[call].began)
        calls.update(call) {
          if hasGrown { $0.lengthen(to: limit, own: own) } else { $0.limit(to: limit) }
        }
      }
      setTurn(of: id)
    }
  }

  /// Cancels calls at their deadlines, and abandons those that were cancelled before and are due.
  mutating func expire() {
    for id in calls.deliveryIDs where calls.contains(id) && calls[id].earliest <= now {
      for call in calls.due(in: id, at: now) {
        if calls.find(call)?.isCancelled == true {
          abandon(call)
        } else if calls[id].step.isHealthCheck,
          let end = health.patience(after: calls[call].deadline, at: now)
        {
          calls.update(call) { $0.extend(to: end, grace: nil) }
        } else {
          cancel(call)
        }
      }
      advance(id)
      if calls.contains(id) { calls.findEarliest(in: id, at: now) }
    }
  }

  mutating func cancel(_ id: CallID, grace: Duration? = nil) {
    calls.update(id) { $0.cancel(at: now, grace: grace) }
    let (member, step) = (calls[id].member, calls[id].step)
    if member.isWork { return cancelWork(id, of: member.id, begins: step.beginsWork) }
    if let caller = calls[id].caller { effects.cancels.append(caller) }
  }

  mutating func abandon(_ id: CallID) {
    let call = calls.abandon(id)
    registry.members.update(call.observer) { $0.isBusy = true }
    // The observer of a hook that never begins was not notified: it is notified again once it is free, unless the daemon
    // terminates.
    if call.progress < .begun, !call.constants.isNested {
      registry.notReached(call.observer, call.step)
    }
    let outcome: LifecycleReport.Outcome =
      switch call.progress {
      case .enqueued: .skipped(.noThread)
      case .entering: .abandoned(.waitingForExecutor)
      case .begun: .abandoned(.running)
      }
    // A hook that was not called has taken no time.
    if call.progress == .enqueued {
      calls[call.delivery].record(outcome, of: call.name, call.observer, began: call.began)
      note(outcome, of: call.observer, call.step)
    } else {
      record(outcome, of: call)
    }
  }

  mutating func extend(_ id: CallID, by extra: Duration) {
    guard let call = calls.find(id), !call.isCancelled else { return }
    let outer = calls[call.delivery].outer?.deadline ?? .distantFuture
    var deadline = min(call.deadline.advanced(by: extra), outer)
    let gain = call.deadline.duration(to: deadline)
    guard gain > .zero else { return }
    var grace: Duration?
    // The service manager is notified, so the stop may take longer: once for all that run together.
    if policy.hasServiceManager, stop.budget?.isHurried == false {
      calls.update(id) { $0.granted += gain }
      let more = max(.zero, calls[id].granted - calls[call.delivery].granted)
      calls[call.delivery].granted += more
      stop.extend(by: more, at: now)
    }
    if let limit = limit(of: call.constants.budgetStep) {
      deadline = min(deadline, limit.deadline)
      grace = limit.grace
    }
    for id in calls.deliveryIDs { setTurn(of: id) }
    calls.update(id) { $0.extend(to: deadline, grace: grace) }
    if let call = calls.find(id) {
      publishExtension(until: call.deadline.advanced(by: call.grace))
    }
  }

  /// The service manager's timers run while the daemon starts, reloads or stops. At other times the message would only
  /// weaken the watchdog.
  mutating func publishExtension(until end: MonotonicTime) {
    guard policy.hasServiceManager else { return }
    if let budget = stop.budget {
      askForTime(until: budget.end.advanced(by: budget.exitGrace + TimeExtension.margin))
    } else if let kind = registry.transition?.kind, kind == .launch || kind == .reload {
      askForTime(until: max(asked?.until ?? now, end.advanced(by: TimeExtension.margin)))
    }
  }

  private mutating func askForTime(until: MonotonicTime) {
    let interval = stop.allowed == nil ? TimeExtension.withoutBus : TimeExtension.interval
    var next = now.advanced(by: interval)
    if let began = stop.budget?.began, let limit = knownLimit {
      next = max(next, began.advanced(by: limit - TimeExtension.margin))
    }
    asked = TimeExtension(until: until, next: next)
    effects.publish(.extended(now.duration(to: until)))
  }

  /// Asks for the same time again, when that is due.
  mutating func repeatExtension() {
    guard let asked, asked.next <= now else { return }
    if now < asked.until { askForTime(until: asked.until) } else { self.asked = nil }
  }

  /// The time that the service manager allows a stop; `nil` where that is unknown. Before READY its start is what it
  /// limits, also while the daemon stops.
  var knownLimit: Duration? { health.isArmed ? stop.allowed : nil }
}
