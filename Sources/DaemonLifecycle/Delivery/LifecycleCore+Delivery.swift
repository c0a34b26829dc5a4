// How steps become calls, and calls become entries of a report.
extension LifecycleCore {
  /// Begins steps until one has calls to wait for, or there is none.
  func pump(_ state: inout State, _ work: inout Work) {
    while !state.isClosed {
      let plan = state.registry.next()
      // A walk may end without a last step: what was left of it is no longer wanted, or was replaced.
      let isWalkOver = plan.map { $0.walk != state.walk?.number } ?? !state.registry.isInWalk
      if isWalkOver { finishWalk(&state, &work) }
      guard let plan else { return }
      begin(plan, &state, &work)
    }
  }

  private func begin(
    _ plan: LifecycleRegistry.Plan, _ state: inout State, _ work: inout Work
  ) {
    if state.walk == nil { beginWalk(plan, &state, &work) }
    var waiter: CheckedContinuation<LifecycleReport, Never>?
    if case .posted(_, let id) = plan.step { waiter = state.posters.removeValue(forKey: id) }
    let delivery = newDelivery(plan, waiter: waiter, outer: nil, &state)
    if case .bodyEnds = plan.step { awaitBody(delivery, &state) }
    announce(plan.step, cause: plan.cause, state, &work)
    advance(delivery, &state, &work)
  }

  /// A notification that a hook posts is delivered at once, beside the step that the hook is part of: the
  /// step can't go on before the hook, and the hook may wait for its post.
  func beginNested(
    _ notification: any LifecycleNotification, in outer: HookCall,
    waiter: CheckedContinuation<LifecycleReport, Never>, _ state: inout State, _ work: inout Work
  ) {
    let step = LifecycleStep.posted(notification, id: PostID(value: 0))
    let plan = state.registry.audience(of: step, cause: outer.cause)
    let budgetStep = state.deliveries[outer.delivery]?.budgetStep ?? outer.step
    beginBeside(plan, waiter: waiter, outer: (outer.deadline.time, budgetStep), &state, &work)
  }

  /// A delivery beside the walk under way: its deadline, and whose part of the stop budget it may use.
  func beginBeside(
    _ plan: LifecycleRegistry.Plan, waiter: CheckedContinuation<LifecycleReport, Never>?,
    outer: (deadline: MonotonicTime, budgetStep: LifecycleStep), _ state: inout State,
    _ work: inout Work
  ) {
    let delivery = newDelivery(plan, waiter: waiter, outer: outer, &state)
    announce(plan.step, cause: plan.cause, state, &work)
    advance(delivery, &state, &work)
  }

  private func newDelivery(
    _ plan: LifecycleRegistry.Plan, waiter: CheckedContinuation<LifecycleReport, Never>?,
    outer: (deadline: MonotonicTime, budgetStep: LifecycleStep)?, _ state: inout State
  ) -> DeliveryID {
    let id = DeliveryID(value: state.newID())
    var planned: [[Delivery.Planned]] = []
    if let type = plan.step.type.map({ ObjectIdentifier($0) }) {
      for group in plan.groups {
        let entries = group.compactMap { state.entries[$0] }
        // Members without a hook for it are told in no time.
        if outer == nil {
          for entry in entries { markReached(entry, unlessHooksFor: type, &state) }
        }
        planned.append(calls(of: entries) { $0.hooks(for: type) })
        // A health check is a question to those who can answer it, and no news.
        if !plan.step.isHealthCheck { planned.append(calls(of: entries) { $0.wildcards }) }
      }
    }
    state.deliveries[id] = Delivery(
      id: id, step: plan.step, cause: plan.cause, groups: planned.filter { !$0.isEmpty }[...],
      waiter: waiter, outerDeadline: outer?.deadline,
      budgetStep: outer?.budgetStep ?? plan.step,
      isOfTermination: plan.isOfTermination)
    return id
  }

  private func calls(
    of entries: [ObserverEntry], _ hooks: (ObserverEntry) -> [Hook]
  ) -> [Delivery.Planned] {
    entries.flatMap { entry in hooks(entry).map { Delivery.Planned(entry: entry, hook: $0) } }
  }

  private func markReached(
    _ entry: ObserverEntry, unlessHooksFor type: ObjectIdentifier, _ state: inout State
  ) {
    if entry.hooks(for: type).isEmpty, entry.wildcards.isEmpty { state.registry.reached(entry.id) }
  }

  /// Streams and recorders see a step as it begins.
  private func announce(
    _ step: LifecycleStep, cause: LifecycleCause, _ state: State, _ work: inout Work
  ) {
    guard recorder != nil || !state.streams.isEmpty, let type = step.type else { return }
    let context = LifecycleContext(cause: cause, time: LifecycleClock.Instant(now), call: nil)
    guard let notification = step.notification(context) else { return }
    let own = NotificationSink.Subject.notifications(ObjectIdentifier(type))
    let subjects = step.isHealthCheck ? [own] : [.all, own]
    let streams = state.streams.values.filter { subjects.contains($0.subject) }
    work.tellings.append { [recorder] in
      recorder?.willDeliver(notification)
      for stream in streams { stream.yield(notification) }
    }
  }

  // MARK: Calls

  /// Begins group after group until one has a call that runs; ends the delivery after the last.
  func advance(_ id: DeliveryID, _ state: inout State, _ work: inout Work) {
    while let delivery = state.deliveries[id], delivery.running.isEmpty {
      if isOvertaken(delivery, state) { skipOvertaken(in: id, &state, &work) }
      guard let group = state.deliveries[id]!.groups.popFirst() else {
        return finish(id, &state, &work)
      }
      for planned in group { begin(planned, in: id, &state, &work) }
    }
  }

  private func isOvertaken(_ delivery: Delivery, _ state: State) -> Bool {
    state.registry.termination != nil && !delivery.isOfTermination && !delivery.isNested
      && delivery.step.yieldsToTermination
  }

  private func skipOvertaken(in id: DeliveryID, _ state: inout State, _ work: inout Work) {
    for planned in state.deliveries[id]!.groups.joined()
    where state.entries[planned.entry.id] != nil {
      record(.skipped(.overtaken), of: planned.entry, in: id, .zero, &state)
      state.walk?.isOvertaken = true
    }
    work.garbage.append(state.deliveries[id]!.groups)
    state.deliveries[id]!.groups = []
  }

  private func begin(
    _ planned: Delivery.Planned, in id: DeliveryID, _ state: inout State, _ work: inout Work
  ) {
    let entry = planned.entry
    guard state.entries[entry.id] != nil else {
      work.garbage.append(entry)  // removed since the delivery began
      return
    }
    let delivery = state.deliveries[id]!
    let isBusy = isBusy(entry, for: delivery.step, state)
    // A busy observer is told as soon as it can hear, unless there is no later.
    if !delivery.isNested, !isBusy || state.registry.termination != nil {
      state.registry.reached(entry.id)
    }
    if isBusy {
      return record(.skipped(.busy), of: entry, in: id, .zero, &state)
    }
    let now = now
    guard let slot = slot(for: delivery, at: now, state) else {
      return record(.skipped(.outOfTime), of: entry, in: id, .zero, &state)
    }
    let call = HookCall(
      entry: entry, hook: planned.hook, step: delivery.step, delivery: id, cause: delivery.cause,
      began: now, deadline: slot.cancel, core: self)
    let driver = work.start(call)
    state.deliveries[id]!.running.append(
      Delivery.Running(call: call, driver: driver, next: slot.cancel, grace: slot.grace))
  }

  /// An observer with an abandoned hook hears nothing but, once, that it should save.
  private func isBusy(_ entry: ObserverEntry, for step: LifecycleStep, _ state: State) -> Bool {
    guard let unfinished = state.unfinished[entry.id] else { return false }
    return !step.isSave || unfinished.contains { $0.step.isSave }
  }

  /// When a call beginning now is cancelled, and how long it then has; `nil`: there is no time for it.
  private func slot(
    for delivery: Delivery, at now: MonotonicTime, _ state: State
  ) -> (cancel: MonotonicTime, grace: Duration)? {
    let grace = configuration.cancellationGrace
    var cancel = now.advanced(by: configuration.hookDeadline)
    if let outer = delivery.outerDeadline { cancel = min(cancel, outer) }
    guard let limit = limit(of: delivery, at: now, state) else { return (cancel, grace) }
    return limit.end > now ? (min(cancel, limit.cancel), limit.grace) : nil
  }

  /// What the budget leaves for the group under way, or the next: when it must be over, and when a call
  /// must be cancelled for that. `nil` unless terminating, or suspending while logind waits.
  func limit(
    of delivery: Delivery, at now: MonotonicTime, _ state: State
  ) -> (cancel: MonotonicTime, grace: Duration, end: MonotonicTime)? {
    // A health check stands beside a suspend, and has its own deadline.
    let sleepBudget = delivery.step.isHealthCheck ? nil : state.sleepBudget
    guard let budget = state.budget ?? sleepBudget else { return nil }
    let share = budget.share(of: delivery.budgetStep, among: delivery.groups.count + 1, at: now)
    let grace = min(configuration.cancellationGrace, share / 4)
    return (now.advanced(by: share - grace), grace, now.advanced(by: share))
  }

  /// What runs keeps its deadline, unless the budget ends before.
  func limitRunning(at now: MonotonicTime, _ state: inout State) {
    for (id, delivery) in state.deliveries {
      guard let limit = limit(of: delivery, at: now, state) else { continue }
      for index in delivery.running.indices {
        var running = delivery.running[index]
        running.grace = min(running.grace, limit.grace)
        running.next = min(running.next, running.isCancelled ? limit.end : limit.cancel)
        running.call.set(deadline: min(running.call.deadline.time, running.next))
        state.deliveries[id]!.running[index] = running
      }
    }
  }

  func record(
    _ outcome: LifecycleReport.Outcome, of entry: ObserverEntry, in id: DeliveryID,
    _ duration: Duration, text: String? = nil, _ state: inout State
  ) {
    let type = state.deliveries[id]?.step.type
    state.deliveries[id]?.entries.append(
      LifecycleReport.Entry(
        notification: type, outcome: outcome, duration: duration, name: entry.name,
        errorText: text))
  }

  /// A hook has returned. Gives its driver the next call, if that driver may be used on.
  func ended(
    _ call: HookCall, _ outcome: LifecycleReport.Outcome, driver: HookDriver
  ) -> HookCall? {
    let now = now
    return change(reusing: driver.isCancelled ? nil : driver) { state, work in
      guard call.end() else {
        work.reusable = nil
        return self.endedLate(call, at: now, &state, &work)
      }
      guard
        let index = state.deliveries[call.delivery]?.running.firstIndex(where: { $0.call === call })
      else { return }
      let running = state.deliveries[call.delivery]!.running.remove(at: index)
      if running.isCancelled || driver.isCancelled { work.reusable = nil }
      self.record(
        outcome, of: call, wasCancelled: running.isCancelled, at: now, &state, &work)
      self.advance(call.delivery, &state, &work)
    }.next
  }

  private func record(
    _ outcome: LifecycleReport.Outcome, of call: HookCall, wasCancelled: Bool,
    at now: MonotonicTime, _ state: inout State, _ work: inout Work
  ) {
    let duration = call.began.duration(to: now)
    guard case .skipped(.gone) = outcome else {
      let outcome = wasCancelled ? .timedOut : outcome
      record(
        outcome, of: call.entry, in: call.delivery, duration, text: call.errorText, &state)
      return noteLaunch(of: call, outcome, &state)
    }
    // One that was removed while its driver was on the way is not missed.
    guard state.entries[call.entry.id] != nil else { return }
    record(outcome, of: call.entry, in: call.delivery, duration, &state)
    remove([call.entry.id], &state, &work)
  }

  /// An observer that could not launch is not asked to save: that would destroy what it could not restore.
  func noteLaunch(
    of call: HookCall, _ outcome: LifecycleReport.Outcome, _ state: inout State
  ) {
    guard case .didFinishLaunching = call.step, outcome.severity > 0 else { return }
    if configuration.terminatesWhenLaunchFails { state.registry.launchFailed(call.entry.id) }
  }

  /// A hook that had been given up has ended after all: its observer can be told things again.
  func endedLate(
    _ call: HookCall, at now: MonotonicTime, _ state: inout State, _ work: inout Work
  ) {
    guard var calls = state.unfinished[call.entry.id] else { return }
    calls.removeAll { $0 === call }
    state.unfinished[call.entry.id] = calls.isEmpty ? nil : calls
    if calls.isEmpty { state.registry.setBusy(call.entry.id, false) }
    let time = call.began.duration(to: now).inSeconds
    tell(
      .endedLate(
        "\(call.entry.name), \(call.step.name): has ended after \(time) s, after it was given up"),
      &work)
  }

  /// The observer was removed: what it was about to hear it will not; what it hears goes on.
  func withdrawCalls(of entry: ObserverEntry, _ state: inout State, _ work: inout Work) {
    for id in Array(state.deliveries.keys) {
      for index in state.deliveries[id]!.running.indices.reversed() {
        let running = state.deliveries[id]!.running[index]
        guard running.call.entry === entry, running.call.withdraw() else { continue }
        work.garbage.append(state.deliveries[id]!.running.remove(at: index))
        advance(id, &state, &work)
        break  // an observer has one call at a time in a delivery
      }
    }
  }

  // MARK: Ends

  private func finish(_ id: DeliveryID, _ state: inout State, _ work: inout Work) {
    guard let delivery = state.deliveries.removeValue(forKey: id) else { return }
    work.garbage.append(delivery)
    let report = LifecycleReport(cause: delivery.cause, entries: delivery.entries)
    if let waiter = delivery.waiter { work.tellings.append { waiter.resume(returning: report) } }
    if delivery.step.isHealthCheck { observersAnswered(report, &state, &work) }
    guard !delivery.isNested else { return publishBeside(report, of: delivery, state, &work) }
    state.walk?.entries += delivery.entries
    let isWalkOver = state.registry.finishStep()
    // What a termination has overtaken is not part of its report.
    let isOvertaken = state.registry.termination != nil && !delivery.isOfTermination
    if isWalkOver || isOvertaken { finishWalk(&state, &work) }
  }

  private func finishWalk(_ state: inout State, _ work: inout Work) {
    guard let walk = state.walk else { return }
    state.walk = nil
    state.progressDeadline = nil
    if walk.kind == .suspend || walk.kind == .termination { state.sleepBudget = nil }
    var report = LifecycleReport(cause: walk.cause, entries: walk.entries)
    report.isOvertaken = walk.isOvertaken
    tell(.ended(walk.kind, report, walk.began.duration(to: now), snapshot(state)), &work)
    publish(report, state, &work)
    if case .launch = walk.cause.origin { launchEnded(report, &state, &work) }
    if state.registry.state == .terminated { conclude(report, &state, &work) }
  }

  /// Of a post in a hook, or of a health check, of which only problems are news.
  private func publishBeside(
    _ report: LifecycleReport, of delivery: Delivery, _ state: State, _ work: inout Work
  ) {
    let problems = report.problems
    if delivery.step.isHealthCheck {
      work.tellings.append { [recorder] in recorder?.didFinish(report) }
    } else {
      publish(report, state, &work)
      if !problems.isEmpty { tell(.problems(problems), &work) }
    }
  }

  private func publish(_ report: LifecycleReport, _ state: State, _ work: inout Work) {
    let streams = state.streams.values.filter { $0.subject == .reports }
    work.tellings.append { [recorder] in
      recorder?.didFinish(report)
      for stream in streams { stream.yield(report) }
    }
  }

  /// After `pump`: whatever could begin has begun.
  func isIdle(_ state: State) -> Bool { state.deliveries.isEmpty && state.health.round == nil }
}
