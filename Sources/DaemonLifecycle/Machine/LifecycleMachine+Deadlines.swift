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
    let budget = stop.budget != nil || sleep.budget != nil ? limit(of: id) : nil
    let limit = min(budget?.deadline ?? .distantFuture, outer)
    guard now.advanced(byNanoseconds: Self.leastNanoseconds) <= limit else {
      // Work is cancelled even so.
      if case .workEnds = constants.step { return CallTime(deadline: now, grace: hurriedGrace) }
      guard constants.step.isHealthCheck, let more = health.patience(after: outer, at: now)
      else { return nil }
      return CallTime(deadline: now.advanced(by: more), grace: policy.cancellationGrace)
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

  /// Returns the budget's limit for the group under way. `nil` unless draining, terminating, or suspending while logind
  /// waits.
  @inline(__always) mutating func limit(of id: DeliveryID) -> CallTime? {
    // A health check stands beside a suspend, and has its own deadline.
    let sleepBudget = calls[id].budgetStep.isHealthCheck ? nil : sleep.budget
    guard let budget = stop.budget ?? sleepBudget else { return nil }
    let place = calls[id].place ?? findPlace(of: id, in: budget)
    let share = budget.share(
      of: place.step, at: now, claim: calls[id].claim, beside: place.others)
    return limit(share)
  }

  /// Returns the budget's limit for a call. A save that is waited for once more has the time of the saves, wherever it is
  /// waited for.
  mutating func limit(of call: Call) -> CallTime? {
    guard call.isAwaitedAgain, call.step.isSave, let budget = stop.budget else {
      return limit(of: call.delivery)
    }
    var saves = calls[call.delivery].saves ?? StopBudget.Needs()
    if calls[call.delivery].saves == nil {
      saves.add(plannedCalls(of: call.step)[...], claim: false)
      calls[call.delivery].saves = saves
    }
    return limit(budget.share(of: call.step, at: now, beside: saves))
  }

  private func limit(_ share: Duration) -> CallTime {
    let grace = policy.grace(in: share)
    return CallTime(deadline: now.advanced(by: share - grace), grace: grace)
  }

  private mutating func findPlace(of id: DeliveryID, in budget: StopBudget) -> Delivery.Place {
    let (step, later) = steps(of: id, in: budget)
    var place = Delivery.Place(step: step)
    if !isOvertaken(id) { place.others.add(calls[id].waiting) }
    // A save that is cut off is not repeated, since its observer is busy: it has an equal part, whatever others claim.
    let claim = !calls[id].budgetStep.isSave
    for step in later { place.others.add(plannedCalls(of: step)[...], claim: claim) }
    if later.contains(where: \.endsWork), !calls.leftBehind.isEmpty { place.others.addGroup() }
    place.others.kept = budget.kept(for: place.others.groups + 1, of: place.step, at: now)
    calls[id].place = place
    return place
  }

  /// Returns the step whose time a delivery has, and those of a stop that share this time after it. What a stop finds under
  /// way ends before the reserve for the saves that follow. A save under way shares that too, where nothing has to end before
  /// them, or nothing could.
  private mutating func steps(
    of id: DeliveryID, in budget: StopBudget
  ) -> (LifecycleStep, later: [LifecycleStep]) {
    let step = calls[id].budgetStep
    if stop.budget == nil { return (step, []) }
    if step.isPause { return (step, [.workEnds]) }
    // Who was busy is paused after it.
    if case .workEnds = step { return (step, [.kind(.didEnterBackground)]) }
    if calls[id].isOfTermination { return (step, []) }
    let pauses: [LifecycleStep] = [.kind(.didEnterBackground), .workEnds]
    if step.isSave,
      budget.end(of: .workEnds) <= now
        || calls.leftBehind.isEmpty && pauses.allSatisfy({ plannedCalls(of: $0).isEmpty })
    {
      return (step, [step])
    }
    return (.workEnds, pauses)
  }

  /// The calls of a step if it began now.
  private mutating func plannedCalls(of step: LifecycleStep) -> [Delivery.PlannedCall] {
    planCalls(of: registry.plan(step, cause: LifecycleCause(.api)), isNested: true)
  }

  /// Warns of limits that a stop would cut off, when that is known rather than when it happens: once the launch has ended,
  /// and when a stop has another time than before.
  ///
  /// - Parameter newcomer: One that was added later. Its limit is compared with the whole time before the save, since a look
  ///   at all others would cost each the more, the more there are.
  mutating func warnOfLimits(of newcomer: Member? = nil) {
    guard hasOwnLimits, registry.state != .launching, !isTerminating else { return }
    let budget = StopBudget(policy, allowed: stop.allowed, from: now)
    let step = LifecycleStep.workEnds
    if let newcomer { return warnOfLimit(of: newcomer, in: budget.share(of: step, at: now)) }
    // Also those that are in the background now.
    let pauses = registry.plan(.kind(.didEnterBackground), cause: LifecycleCause(.api)) { _ in true
    }
    let calls = planCalls(of: pauses, isNested: true) + plannedCalls(of: step)
    // As in a stop in which each takes all of its time.
    var (others, time, share) = (StopBudget.Needs(), now, Duration.zero)
    others.add(calls[...])
    others.kept = budget.kept(for: max(1, others.groups), of: step, at: now)
    for call in calls {
      if !call.isTogether {
        others.remove(call.claim)
        share = budget.share(of: step, at: time, claim: call.claim, beside: others)
        time = time.advanced(by: share)
      }
      if let member = registry.members[call.observer] { warnOfLimit(of: member, in: share) }
    }
  }

  private mutating func warnOfLimit(of member: Member, in share: Duration) {
    let time = share - policy.grace(in: share)
    guard let timeout = member.timeout, timeout > time else { return }
    (shortestSaid, longestSaid) = (min(timeout, shortestSaid), max(timeout, longestSaid))
    effects.publish(
      .warning(
        "\(member.name) may take \(timeout.forReading), but a stop leaves only \(time.forReading) before the save. Raise"
          + " the stop's time (TimeoutStopSec=, a container's grace period), or lower the limit or the save reserve."
      ))
  }

  /// Limits running calls to the budget. They keep an earlier deadline, unless the budget has grown, which may have cut them
  /// off until now.
  mutating func limitRunning(hasGrown: Bool = false) {
    for id in calls.deliveryIDs where !hasGrown || !calls[id].isNested {
      (calls[id].place, calls[id].saves) = (nil, nil)
      for call in calls[id].running {
        guard let limit = limit(of: calls[call]) else { continue }
        let own = ownDeadline(of: calls[call].member, calls[id].step, from: calls[call].began)
        calls.update(call) {
          if hasGrown { $0.lengthen(to: limit, own: own) } else { $0.limit(to: limit) }
        }
      }
    }
  }

  /// Cancels calls at their deadlines, and abandons those that were cancelled before and are due.
  mutating func expire() {
    for id in calls.deliveryIDs where calls.contains(id) && calls[id].earliest <= now {
      for call in calls.due(in: id, at: now) {
        if calls.find(call)?.isCancelled == true {
          abandon(call)
        } else if calls[id].step.isHealthCheck,
          let more = health.patience(after: calls[call].deadline, at: now)
        {
          calls.update(call) { $0.extend(to: now.advanced(by: more), grace: nil) }
        } else {
          cancel(call)
        }
      }
      calls.findEarliest(in: id)
      advance(id)
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
    if call.progress < .begun, !calls[call.delivery].isNested { registry.notReached(call.observer) }
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
    } else if let limit = limit(of: call) {
      deadline = min(deadline, limit.deadline)
      grace = limit.grace
    }
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
    } else if let kind = transition?.kind, kind == .launch || kind == .reload {
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
