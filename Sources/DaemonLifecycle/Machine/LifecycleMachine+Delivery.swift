import DaemonSystemd

// From a step to its calls, and from their ends to its report.
extension LifecycleMachine {
  /// Begins steps until one has calls to wait for, or there is none.
  mutating func pump(at now: MonotonicTime, _ effects: inout Effects) {
    while !isClosed {
      let plan = registry.next()
      // A transition may end without a last step: what was left of it is no longer wanted, or was replaced.
      let isTransitionOver =
        plan.map { $0.transition != transition?.number } ?? !registry.isInTransition
      if isTransitionOver { finishTransition(at: now, &effects) }
      guard let plan else { return }
      begin(plan, at: now, &effects)
    }
  }

  private mutating func begin(
    _ plan: LifecycleRegistry.Plan, at now: MonotonicTime, _ effects: inout Effects
  ) {
    if transition == nil { beginTransition(plan, at: now, &effects) }
    var post: PostID?
    if case .posted(let posted) = plan.step { post = posted.id }
    let delivery = open(plan, post: post, outer: nil, at: now)
    recordDepartures(in: delivery)
    if case .bodyEnds = plan.step { awaitBody(in: delivery, at: now) }
    effects.messages.append(.announced(plan.step, plan.cause))
    advance(delivery, at: now, &effects)
  }

  /// A delivery beside the transition under way.
  mutating func beginOutOfBand(
    _ plan: LifecycleRegistry.Plan, post: PostID?, outer: Delivery.Outer, at now: MonotonicTime,
    _ effects: inout Effects
  ) {
    let delivery = open(plan, post: post, outer: outer, at: now)
    effects.messages.append(.announced(plan.step, plan.cause))
    advance(delivery, at: now, &effects)
  }

  /// A notification that a hook posts is delivered at once: the step that the hook is part of can't go on before the
  /// hook, and the hook may wait for its post. One that has ended posts as anybody does.
  mutating func post(
    _ notification: any LifecycleNotification, _ id: PostID, _ inside: CallID?,
    at now: MonotonicTime, _ effects: inout Effects
  ) {
    guard !isClosed else {
      let nobody = LifecycleReport(cause: LifecycleCause(.api), entries: [])
      return effects.messages.append(.answered(id, nobody))
    }
    guard let inside, calls.isCurrent(inside), let outer = calls.find(inside) else {
      return receive(LifecycleEvent(.post(notification)), post: id, at: now, &effects)
    }
    let delivery = calls[outer.delivery]
    let step = LifecycleStep.posted(LifecyclePost(notification, id: id))
    beginOutOfBand(
      registry.audience(of: step, cause: delivery.cause), post: id,
      outer: .init(deadline: outer.deadline, budgetStep: delivery.budgetStep), at: now, &effects)
  }

  private mutating func open(
    _ plan: LifecycleRegistry.Plan, post: PostID?, outer: Delivery.Outer?, at now: MonotonicTime
  ) -> DeliveryID {
    let planned = planCalls(of: plan, isNested: outer != nil)
    return calls.open(
      Delivery.Constants(plan, calls: planned, post: post, outer: outer, began: now))
  }

  /// The hooks to call: of each group those for the type, then those for all.
  private mutating func planCalls(
    of plan: LifecycleRegistry.Plan, isNested: Bool
  ) -> LifecycleAudience<Delivery.PlannedCall> {
    var planned = LifecycleAudience<Delivery.PlannedCall>()
    guard let type = plan.step.type.map({ ObjectIdentifier($0) }) else { return planned }
    // A health check is a question to those who can answer it, and no news.
    let tellsAll = !plan.step.isHealthCheck
    planned.reserve(plan.audience.members.count)
    var wildcards: [Delivery.PlannedCall] = []
    var start = 0
    for segment in plan.audience.segments {
      var isFirst = true
      for id in plan.audience.members[start..<segment.end] {
        guard let (own, wildcard) = hooks(of: id, for: type) else { continue }
        // Members without a hook for it are reached in no time.
        if own == nil, wildcard == nil, !isNested { registry.reached(id) }
        if let own {
          planned.append(.init(observer: id, hook: own), together: segment.isConcurrent && !isFirst)
          isFirst = false
        }
        if tellsAll, let wildcard {
          let call = Delivery.PlannedCall(observer: id, hook: wildcard)
          if segment.isConcurrent { wildcards.append(call) } else { planned.append(call) }
        }
      }
      for (index, call) in wildcards.enumerated() { planned.append(call, together: index > 0) }
      wildcards = []
      start = segment.end
    }
    return planned
  }

  private func hooks(of id: ObserverID, for type: ObjectIdentifier) -> (own: Int?, wildcard: Int?)?
  {
    guard let subscriber = subscribers[id] else { return nil }
    return (subscriber.hook(for: type), subscriber.hook(for: nil))
  }

  // MARK: Calls

  /// Begins group after group until one has a call that runs; ends the delivery after the last.
  mutating func advance(_ id: DeliveryID, at now: MonotonicTime, _ effects: inout Effects) {
    while calls.mayAdvance(id) {
      if isOvertaken(id) { skipOvertaken(in: id) }
      guard let group = calls[id].takeGroup() else { return finish(id, at: now, &effects) }
      for index in group { beginCall(index, in: id, at: now, &effects) }
    }
  }

  private func isOvertaken(_ id: DeliveryID) -> Bool {
    registry.termination != nil && !calls[id].isOfTermination && !calls[id].isNested
      && calls[id].step.yieldsToTermination
  }

  private mutating func skipOvertaken(in id: DeliveryID) {
    for planned in calls[id].waiting {
      guard let name = subscribers[planned.observer]?.name else { continue }
      calls[id].record(.skipped(.overtaken), of: name, planned.observer)
      transition.update { $0.isOvertaken = true }
    }
    calls[id].skipWaiting()
  }

  private mutating func beginCall(
    _ index: Int, in id: DeliveryID, at now: MonotonicTime, _ effects: inout Effects
  ) {
    let constants = calls[id].constants
    let planned = constants.calls.members[index]
    let (step, isNested, observer) = (constants.step, constants.isNested, planned.observer)
    // It may have been removed since the delivery began.
    guard let subscriber = subscribers[observer] else { return }
    let isBusy = calls.isBusy(observer, for: step)
    // As a busy one, it may save; else it would be suspended, say, without having been paused.
    let isPostponed = !isNested && !step.isSave && sleep.postponed.contains(observer)
    let slot = isBusy || isPostponed ? nil : slot(in: id, at: now)
    // Whoever can't be called now is notified as soon as that is possible, unless there is no later.
    if !isNested, slot != nil || isTerminating { registry.reached(observer) }
    guard let slot else {
      calls[id].record(.skipped(isBusy ? .busy : .outOfTime), of: subscriber.name, observer)
      if !isBusy, !isNested { postpone(observer) }
      return
    }
    let call = calls.begin(Call(of: constants, in: id, subscriber, began: now, time: slot))
    effects.starts.append(.init(call: call, hook: planned.hook))
  }

  /// There was no time for it: it receives what it has missed when the budget no longer counts, and not before.
  private mutating func postpone(_ observer: ObserverID) {
    guard registry.termination == nil, sleep.postpone(observer) else { return }
    registry.setBusy(observer, true)
  }

  /// The suspend is over, or nothing comes later: those for whom there was no time can be notified again.
  mutating func releasePostponed() {
    for id in sleep.takePostponed() where calls.unfinished[id] == nil {
      registry.setBusy(id, false)
    }
  }

  /// The call is over: its hook has returned, or was not called. One that was withdrawn is known no more.
  mutating func ended(
    _ id: CallID, _ end: CallEnd, at now: MonotonicTime, _ effects: inout Effects
  ) {
    guard let call = calls.end(id) else { return }
    if call.isAbandoned { return endedLate(call, at: now, &effects) }
    record(end, of: call, at: now, &effects)
    advance(call.delivery, at: now, &effects)
  }

  private mutating func record(
    _ end: CallEnd, of call: Call, at now: MonotonicTime, _ effects: inout Effects
  ) {
    let (outcome, text): (LifecycleReport.Outcome, String?)
    switch end {
    case .gone:
      // One that was removed while its driver was on the way is not missed.
      guard let observer = call.observer, subscribers[observer] != nil else { return }
      calls[call.delivery].recordGone(call.name, 1)
      return remove([observer], at: now, &effects)
    case .completed: (outcome, text) = (.completed, nil)
    case .failed(let error, let words): (outcome, text) = (.failed(error), words)
    }
    record(call.isCancelled ? .timedOut : outcome, of: call, text, at: now)
  }

  private mutating func record(
    _ outcome: LifecycleReport.Outcome, of call: Call, _ text: String? = nil,
    at now: MonotonicTime
  ) {
    calls[call.delivery].record(
      outcome, of: call.name, call.observer, began: call.began,
      duration: call.began.duration(to: now), text: text)
    noteLaunch(of: call, outcome)
  }

  /// An observer that could not launch is not asked to save: that would destroy what it could not restore.
  private mutating func noteLaunch(of call: Call, _ outcome: LifecycleReport.Outcome) {
    guard call.step.kind == .didFinishLaunching, let observer = call.observer, outcome.severity > 0,
      configuration.terminatesWhenLaunchFails
    else { return }
    registry.launchFailed(observer)
  }

  /// A hook that had been abandoned has ended after all: its observer can be notified again.
  private mutating func endedLate(
    _ call: Call, at now: MonotonicTime, _ effects: inout Effects
  ) {
    if let observer = call.observer, calls.unfinished[observer] == nil,
      !sleep.postponed.contains(observer)
    {
      registry.setBusy(observer, false)
    }
    let time = call.began.duration(to: now).inSeconds
    effects.publish(
      .endedLate(
        "\(call.name), \(call.step.name): has ended after \(time) s, after it was abandoned"))
  }

  /// The observer was removed: what it was about to receive it will not; what it receives goes on.
  mutating func withdrawCalls(
    of observer: ObserverID, at now: MonotonicTime, _ effects: inout Effects
  ) {
    for id in calls.pending(of: observer) {
      guard let call = calls.end(id) else { continue }
      effects.withdrawn.append(id)
      advance(call.delivery, at: now, &effects)
    }
  }

  /// Those that have gone away since the last report.
  private mutating func recordDepartures(in id: DeliveryID) {
    guard !departures.isEmpty, !calls[id].step.isPost, calls[id].type != nil else { return }
    for (name, count) in departures.counts { calls[id].recordGone(name, count) }
    departures = Departures()
  }

  // MARK: Time

  /// Less than this is no time to do anything in.
  private static let leastNanoseconds: Int64 = 1_000_000

  /// The time of a call that begins now; `nil`: there is none for it.
  private func slot(in id: DeliveryID, at now: MonotonicTime) -> TimeSlot? {
    let own = now.advanced(byNanoseconds: policy.hookNanoseconds)
    let outer = calls[id].constants.outer?.deadline ?? .distantFuture
    guard let budget = limit(of: id, at: now) else {
      guard now.advanced(byNanoseconds: Self.leastNanoseconds) <= outer else { return nil }
      return TimeSlot(deadline: min(own, outer), grace: configuration.cancellationGrace)
    }
    let limit = min(budget.cancel, outer)
    guard now.advanced(byNanoseconds: Self.leastNanoseconds) <= limit else { return nil }
    return TimeSlot(deadline: min(own, limit), grace: budget.grace)
  }

  /// What the budget leaves for the group under way, or the next. `nil` unless terminating, or suspending while logind
  /// waits.
  func limit(of id: DeliveryID, at now: MonotonicTime) -> BudgetLimit? {
    // A health check stands beside a suspend, and has its own deadline.
    if stop.budget == nil, sleep.budget == nil { return nil }
    let sleepBudget = calls[id].step.isHealthCheck ? nil : sleep.budget
    guard let budget = stop.budget ?? sleepBudget else { return nil }
    let groups = calls[id].waitingGroups + 1
    let share = budget.share(of: calls[id].budgetStep, among: groups, at: now)
    let grace = min(configuration.cancellationGrace, share / 4)
    return BudgetLimit(
      cancel: now.advanced(by: share - grace), grace: grace, end: now.advanced(by: share))
  }

  /// What runs keeps its deadline, unless the budget ends before.
  mutating func limitRunning(at now: MonotonicTime) {
    for id in calls.order {
      guard let limit = limit(of: id, at: now) else { continue }
      for call in calls[id].running { calls.update(call) { $0.limit(to: limit) } }
    }
  }

  /// Cancels the calls whose deadline has come and abandons those that were cancelled before.
  mutating func expire(
    _ statuses: [CallID: LifecycleReport.Outcome.Progress], at now: MonotonicTime,
    _ effects: inout Effects
  ) {
    for id in calls.order where calls.contains(id) && calls[id].earliest <= now {
      for call in calls.due(in: id, at: now) {
        if calls.find(call)?.isCancelled == true {
          abandon(call, statuses[call] ?? .unknown, at: now)
        } else {
          cancel(call, at: now, &effects)
        }
      }
      calls.findEarliest(in: id)
      advance(id, at: now, &effects)
    }
  }

  mutating func cancel(
    _ id: CallID, grace: Duration? = nil, at now: MonotonicTime, _ effects: inout Effects
  ) {
    calls.update(id) { $0.cancel(at: now, grace: grace) }
    effects.cancels.append(id)
  }

  /// - Parameter status: Where a hook that has begun is.
  mutating func abandon(
    _ id: CallID, _ status: LifecycleReport.Outcome.Progress, at now: MonotonicTime
  ) {
    let call = calls.abandon(id)
    if let observer = call.observer {
      registry.setBusy(observer, true)
      // A hook that never begins has brought its observer nothing: it is notified again once it is free, if there is a later.
      if call.progress < .begun, !calls[call.delivery].isNested {
        registry.notReached(observer)
      }
    }
    let outcome: LifecycleReport.Outcome =
      switch call.progress {
      case .enqueued: .skipped(.noThread)
      case .driven: .abandoned(.waitingForExecutor)
      case .begun: .abandoned(status)
      }
    // What was not called has taken no time.
    if call.progress == .enqueued {
      calls[call.delivery].record(outcome, of: call.name, call.observer, began: call.began)
      noteLaunch(of: call, outcome)
    } else {
      record(outcome, of: call, at: now)
    }
  }

  mutating func extend(
    _ id: CallID, by extra: Duration, at now: MonotonicTime, _ effects: inout Effects
  ) {
    guard let call = calls.find(id), !call.isCancelled else { return }
    var deadline = call.deadline.advanced(by: extra)
    var grace: Duration?
    // The service manager is told, so the stop may take that much longer.
    if !policy.hasServiceManager || !stop.extend(by: extra),
      let limit = limit(of: call.delivery, at: now)
    {
      deadline = min(deadline, limit.cancel)
      grace = limit.grace
    }
    if let outer = calls[call.delivery].outer { deadline = min(deadline, outer.deadline) }
    calls.update(id) { $0.extend(to: deadline, grace: grace) }
    if let call = calls.find(id) {
      tellExtended(until: call.deadline.advanced(by: call.grace), at: now, &effects)
    }
  }

  /// What the service manager is asked for beyond the time that a hook has got.
  private static let margin = Duration.seconds(1)

  /// The service manager's timers run while the daemon starts, reloads or stops. At other times the message would only
  /// weaken the watchdog.
  private mutating func tellExtended(
    until end: MonotonicTime, at now: MonotonicTime, _ effects: inout Effects
  ) {
    let until: MonotonicTime
    if let budget = stop.budget {
      until = budget.end.advanced(by: budget.exitGrace + Self.margin)
    } else if let kind = transition?.kind, kind == .launch || kind == .reload {
      until = end.advanced(by: Self.margin)
    } else {
      return
    }
    transition.update { $0.askedUntil = until }
    effects.publish(.extended(now.duration(to: until)))
  }

  // MARK: Ends

  private mutating func finish(
    _ id: DeliveryID, at now: MonotonicTime, _ effects: inout Effects
  ) {
    guard let delivery = calls.close(id) else { return }
    // It may be the last who holds what was posted.
    if delivery.step.isPost { effects.released.append(delivery.step) }
    let report = LifecycleReport(cause: delivery.cause, entries: delivery.entries)
    if let post = delivery.post { effects.messages.append(.answered(post, report)) }
    if delivery.isNested { return finishOutOfBand(delivery.step, report, at: now, &effects) }
    transition.update { $0.add(delivery.entries) }
    let isTransitionOver = registry.finishStep()
    // What a termination has overtaken is not part of its report.
    let isOvertaken = registry.termination != nil && !delivery.isOfTermination
    if isTransitionOver || isOvertaken { finishTransition(at: now, &effects) }
  }

  /// A post in a hook, or a health check, of which only problems are news.
  private mutating func finishOutOfBand(
    _ step: LifecycleStep, _ report: LifecycleReport, at now: MonotonicTime,
    _ effects: inout Effects
  ) {
    let problems = report.problems
    if step.isHealthCheck {
      let ill = problems.filter { $0.outcome.severity > 0 }.map(\.description)
      if health.isChecking { tell(health.observersAnswered(ill, at: now), &effects) }
    }
    effects.messages.append(.reported(report, isHealthCheck: step.isHealthCheck))
    if !step.isHealthCheck, !problems.isEmpty { effects.publish(.problems(problems)) }
  }

  // MARK: Transitions

  private mutating func beginTransition(
    _ plan: LifecycleRegistry.Plan, at now: MonotonicTime, _ effects: inout Effects
  ) {
    var new = ActiveTransition(plan, at: now)
    if plan.kind == .suspend { sleep.suspendBegins(at: now) }
    // Without somebody to tell, nobody is woken for it.
    if policy.hasServiceManager {
      new.progressDeadline = now.advanced(by: ActiveTransition.progressInterval)
    }
    transition = new
    effects.publish(.began(plan.kind, plan.cause, at: now))
  }

  private mutating func finishTransition(at now: MonotonicTime, _ effects: inout Effects) {
    guard let ended = transition.take() else { return }
    if ended.kind == .suspend || ended.kind == .termination {
      sleep.suspendEnded()
      releasePostponed()
    }
    var report = LifecycleReport(cause: ended.cause, entries: ended.entries)
    report.isOvertaken = ended.isOvertaken
    report.span = stop.span(of: ended, to: now)
    effects.publish(.ended(ended.kind, report, ended.began.duration(to: now), snapshot))
    effects.messages.append(.reported(report, isHealthCheck: false))
    if case .launch = ended.cause.origin { launchEnded(report, at: now, &effects) }
    if registry.state == .terminated { conclude(report, at: now, &effects) }
  }

  /// Says how far the transition has come when it is time to.
  mutating func tellProgress(at now: MonotonicTime, _ effects: inout Effects) {
    guard let current = transition, current.progressDeadline <= now else { return }
    transition.update { $0.progressDeadline = now.advanced(by: ActiveTransition.progressInterval) }
    effects.publish(.progress(progress(of: current, at: now)))
    // Said again, since `systemctl daemon-reload` makes systemd forget what it was asked for.
    if let until = current.askedUntil, until > now {
      effects.publish(.extended(now.duration(to: until)))
    }
  }

  private func progress(of transition: ActiveTransition, at now: MonotonicTime) -> LifecycleProgress
  {
    var (done, waiting, names) = (transition.entries.count, 0, [ObserverName]())
    for id in calls.order where !calls[id].isNested {
      done += calls[id].entries.count
      waiting += calls[id].waiting.count
      names += calls[id].running.compactMap { calls.find($0)?.name }
    }
    let planned = registry.remainingAudience.reduce(0) { sum, next in
      guard let type = next.step.type.map({ ObjectIdentifier($0) }) else { return sum }
      return next.members.reduce(sum) { $0 + (subscribers[$1]?.hookCount(for: type) ?? 0) }
    }
    return LifecycleProgress(
      transition: transition.kind, done: done, total: done + names.count + waiting + planned,
      waitingFor: names, elapsed: transition.began.duration(to: now))
  }

  /// Tells of an event that has changed why the daemon is in the background, while it stays there.
  mutating func tellReasons(
    _ cause: LifecycleCause, unless before: Set<BackgroundReason>, _ effects: inout Effects
  ) {
    guard registry.state == .background, registry.termination == nil,
      !registry.backgroundReasons.isEmpty, registry.backgroundReasons != before
    else { return }
    effects.publish(.reasonsChanged(cause, snapshot))
  }

  /// Once what a sleep asked for has been done; at once where there is nothing to do. A termination that overtakes it
  /// saves in its place, so the machine waits for its end.
  mutating func tellReadyToSleep(_ effects: inout Effects) {
    guard sleep.isAwaited, stop.exit != nil || registry.isSleepSettled, sleep.takeAwaited() else {
      return
    }
    effects.publish(.readyToSleep)
  }
}
