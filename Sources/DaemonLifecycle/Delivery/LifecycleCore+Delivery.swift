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
    if case .posted(let post) = plan.step { waiter = state.posters.removeValue(forKey: post.id) }
    let delivery = newDelivery(plan, waiter: waiter, outer: nil, &state)
    recordDepartures(in: delivery, &state)
    if case .bodyEnds = plan.step { awaitBody(delivery, &state) }
    announce(plan.step, cause: plan.cause, state, &work)
    advance(delivery, &state, &work)
  }

  /// A notification that a hook posts is delivered at once, beside the step that the hook is part of: the
  /// step can't go on before the hook, and the hook may wait for its post.
  func beginNested(
    _ notification: any LifecycleNotification, in outer: HookRun,
    waiter: CheckedContinuation<LifecycleReport, Never>, _ state: inout State, _ work: inout Work
  ) {
    let step = LifecycleStep.posted(LifecyclePost(notification, id: PostID(value: 0)))
    let plan = state.registry.audience(of: step, cause: outer.delivery.cause)
    beginBeside(
      plan, waiter: waiter, outer: (outer.deadline, outer.delivery.budgetStep), &state, &work)
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
  ) -> Delivery {
    let calls = calls(of: plan, isNested: outer != nil, &state)
    let delivery = Delivery(
      plan: plan, calls: calls, began: now, waiter: waiter,
      outer: outer)
    state.add(delivery)
    return delivery
  }

  /// The hooks to call: of each group those for the type, then those for all.
  private func calls(
    of plan: LifecycleRegistry.Plan, isNested: Bool, _ state: inout State
  ) -> LifecycleAudience<Delivery.Planned> {
    var calls = LifecycleAudience<Delivery.Planned>()
    guard let type = plan.step.type.map({ ObjectIdentifier($0) }) else { return calls }
    // A health check is a question to those who can answer it, and no news.
    let tellsAll = !plan.step.isHealthCheck
    calls.reserve(plan.audience.members.count)
    var wildcards: [Delivery.Planned] = []
    var start = 0
    for stretch in plan.audience.stretches {
      var isFirst = true
      for id in plan.audience.members[start..<stretch.end] {
        guard let entry = state.observers[id] else { continue }
        let own = entry.hook(for: type)
        let wildcard = entry.hook(for: nil)
        // Members without a hook for it are told in no time.
        if own == nil, wildcard == nil, !isNested { state.registry.reached(id) }
        if let own {
          let together = stretch.isConcurrent && !isFirst
          calls.append(Delivery.Planned(entry: entry, hook: own), together: together)
          isFirst = false
        }
        if tellsAll, let wildcard {
          let planned = Delivery.Planned(entry: entry, hook: wildcard)
          if stretch.isConcurrent { wildcards.append(planned) } else { calls.append(planned) }
        }
      }
      for (index, planned) in wildcards.enumerated() { calls.append(planned, together: index > 0) }
      wildcards = []
      start = stretch.end
    }
    return calls
  }

  /// Streams and recorders see a step as it begins.
  private func announce(
    _ step: LifecycleStep, cause: LifecycleCause, _ state: borrowing State, _ work: inout Work
  ) {
    guard recorder != nil || !state.streams.isEmpty, let type = step.type else { return }
    let own = NotificationSink.Subject.notifications(ObjectIdentifier(type))
    let subjects = step.isHealthCheck ? [own] : [.all, own]
    let streams = state.streams.values.filter { subjects.contains($0.subject) }
    guard recorder != nil || !streams.isEmpty else { return }
    let context = LifecycleContext(cause: cause, time: LifecycleClock.Instant(now))
    guard let notification = step.notification(context) else { return }
    work.tellings.append { [recorder] in
      recorder?.willDeliver(notification)
      for stream in streams { stream.yield(notification) }
    }
  }

  // MARK: Calls

  /// Begins group after group until one has a call that runs; ends the delivery after the last.
  func advance(_ delivery: Delivery, _ state: inout State, _ work: inout Work) {
    while delivery.running.isEmpty, delivery.isUnderWay {
      if isOvertaken(delivery, state) { skipOvertaken(in: delivery, &state) }
      guard let stretch = delivery.calls.stretch(at: delivery.nextCall) else {
        return finish(delivery, &state, &work)
      }
      if stretch.isConcurrent {
        let group = delivery.nextCall..<stretch.end
        delivery.nextCall = stretch.end
        for index in group { begin(index..<index + 1, in: delivery, &state, &work) }
      } else {
        let first = delivery.nextCall
        delivery.nextCall += 1
        begin(first..<min(stretch.end, first + HookRun.longest), in: delivery, &state, &work)
      }
    }
  }

  private func isOvertaken(_ delivery: Delivery, _ state: borrowing State) -> Bool {
    state.registry.termination != nil && !delivery.isOfTermination && !delivery.isNested
      && delivery.step.yieldsToTermination
  }

  private func skipOvertaken(in delivery: Delivery, _ state: inout State) {
    for planned in delivery.waiting where state.observers[planned.entry.id] != nil {
      record(.skipped(.overtaken), of: planned.entry, in: delivery, .zero)
      state.walk.update { $0.isOvertaken = true }
    }
    delivery.skipWaiting()
  }

  /// Calls the first of these, and has its driver go on with the others where nothing speaks against that.
  private func begin(
    _ range: Range<Int>, in delivery: Delivery, _ state: inout State, _ work: inout Work
  ) {
    let entry = delivery.calls.members[range.lowerBound].entry
    guard state.observers[entry.id] != nil else { return }  // removed since the delivery began
    let isBusy = isBusy(entry, for: delivery.step, state)
    let now = now
    // As a busy one, it may save; else it would be suspended, say, without having been paused.
    let isPostponed =
      !delivery.isNested && !delivery.step.isSave && state.postponed.contains(entry.id)
    let slot = isBusy || isPostponed ? nil : slot(for: delivery, at: now, state)
    // Whoever can't be called now is told as soon as that is possible, unless there is no later.
    if !delivery.isNested, slot != nil || state.registry.termination != nil {
      state.registry.reached(entry.id)
    }
    guard let slot else {
      record(.skipped(isBusy ? .busy : .outOfTime), of: entry, in: delivery, .zero)
      if !isBusy, !delivery.isNested { postpone(entry, &state) }
      return
    }
    // What shares a limited time is dealt out call by call.
    let isLimited = state.budget != nil || state.sleepBudget != nil || delivery.isNested
    let run = HookRun(
      isLimited ? range.lowerBound..<range.lowerBound + 1 : range, of: delivery, began: now,
      deadline: slot.cancel,
      grace: slot.grace, core: self)
    begin(run, &state)
    if run.range.count > 1 { (state.freeRun, state.freeRunBegan) = (run, now) }
    work.start(run)
  }

  func begin(_ run: HookRun, _ state: inout State) {
    run.delivery.add(run)
    state.occupied += 1
  }

  func end(_ run: HookRun, _ state: inout State) {
    run.delivery.remove(run)
    state.occupied -= 1
  }

  /// Stops the driver that goes from hook to hook by itself, and takes note of how far it has come.
  func holdFreeRun(_ state: inout State) {
    guard let run = state.freeRun.take() else { return }
    run.hold()
    let delivery = run.delivery
    var began = state.freeRunBegan
    for (index, duration) in run.completed {
      let entry = delivery.calls.members[index].entry
      record(.completed, of: entry, in: delivery, from: began, duration)
      began = began.advanced(by: duration)
      state.registry.reached(entry.id)
    }
    state.registry.reached(run.entry.id)
    delivery.nextCall = run.index + 1
  }

  /// An observer with an abandoned hook hears nothing but, once, that it should save.
  private func isBusy(_ entry: ObserverEntry, for step: LifecycleStep, _ state: borrowing State)
    -> Bool
  {
    guard let unfinished = state.unfinished[entry.id] else { return false }
    return !step.isSave || unfinished.contains { $0.step.isSave }
  }

  /// There was no time for it: it is told what it has missed when the budget no longer counts, and not before.
  private func postpone(_ entry: ObserverEntry, _ state: inout State) {
    guard state.registry.termination == nil, state.postponed.insert(entry.id).inserted else {
      return
    }
    state.registry.setBusy(entry.id, true)
  }

  /// The suspend is over, or nothing comes later: those for whom there was no time can be told again.
  func releasePostponed(_ state: inout State) {
    for id in state.postponed where state.unfinished[id] == nil {
      state.registry.setBusy(id, false)
    }
    state.postponed = []
  }

  /// Less than this is no time to do anything in.
  private static let leastTime = Duration.milliseconds(1)

  /// When a call beginning now is cancelled, and how long it then has; `nil`: there is no time for it.
  private func slot(
    for delivery: Delivery, at now: MonotonicTime, _ state: borrowing State
  ) -> (cancel: MonotonicTime, grace: Duration)? {
    let budget = limit(of: delivery, at: now, state)
    let limit = min(budget?.cancel ?? .distantFuture, delivery.outerDeadline ?? .distantFuture)
    guard now.advanced(by: Self.leastTime) <= limit else { return nil }
    let own = now.advanced(by: configuration.hookDeadline)
    return (min(own, limit), budget?.grace ?? configuration.cancellationGrace)
  }

  /// What the budget leaves for the group under way, or the next: when it must be over, and when a call
  /// must be cancelled for that. `nil` unless terminating, or suspending while logind waits.
  func limit(
    of delivery: Delivery, at now: MonotonicTime, _ state: borrowing State
  ) -> (cancel: MonotonicTime, grace: Duration, end: MonotonicTime)? {
    // A health check stands beside a suspend, and has its own deadline.
    let sleepBudget = delivery.step.isHealthCheck ? nil : state.sleepBudget
    guard let budget = state.budget ?? sleepBudget else { return nil }
    let share = budget.share(of: delivery.budgetStep, among: delivery.waitingGroups + 1, at: now)
    let grace = min(configuration.cancellationGrace, share / 4)
    return (now.advanced(by: share - grace), grace, now.advanced(by: share))
  }

  /// What runs keeps its deadline, unless the budget ends before.
  func limitRunning(at now: MonotonicTime, _ state: inout State) {
    for delivery in state.deliveries {
      guard let limit = limit(of: delivery, at: now, state) else { continue }
      for run in delivery.running {
        run.grace = min(run.grace, limit.grace)
        if run.isCancelled { run.giveUp(by: limit.end) } else { run.limit(to: limit.cancel) }
        delivery.noteDeadline(of: run)
      }
    }
  }

  /// - Parameter began: By default, for what was not called, when the last one had ended.
  func record(
    _ outcome: LifecycleReport.Outcome, of entry: ObserverEntry, in delivery: Delivery,
    from began: MonotonicTime? = nil, _ duration: Duration, text: String? = nil
  ) {
    let began = began ?? delivery.entries.last?.ended ?? delivery.began
    // What was not called has taken no time, however long it was waited for.
    var duration = duration
    if case .skipped = outcome { duration = .zero }
    delivery.entries.append(
      LifecycleReport.Entry(
        notification: delivery.type, outcome: outcome, duration: duration, name: entry.name,
        errorText: text, began: began, registration: entry.id.value))
  }

  /// Those that have gone away since the last report.
  private func recordDepartures(in delivery: Delivery, _ state: inout State) {
    guard !state.departures.isEmpty, !delivery.step.isPost, delivery.type != nil else { return }
    for (name, count) in state.departures.counts { recordGone(name, count, in: delivery) }
    state.departures = Departures()
  }

  private func recordGone(_ name: ObserverEntry.Name, _ count: Int, in delivery: Delivery) {
    let began = delivery.entries.last?.ended ?? delivery.began
    delivery.addGone(name, count) {
      LifecycleReport.Entry(
        notification: delivery.type, outcome: .skipped(.gone), duration: .zero, name: name,
        began: began, registration: 0)
    }
  }

  /// A run has come to its end, or must not go on by itself: its current hook has returned. Gives its driver
  /// the next one, if that driver may be used on.
  func ended(
    _ run: HookRun, _ outcome: LifecycleReport.Outcome, _ driver: HookDriver
  ) -> HookRun? {
    let now = now
    return change(reusing: driver.isCancelled ? nil : driver) { state, work in
      guard run.end() else {
        work.reusable = nil
        return self.endedLate(run, at: now, &state, &work)
      }
      guard run.delivery.runs(run) else { return }
      self.end(run, &state)
      if run.isCancelled || driver.isCancelled { work.reusable = nil }
      self.record(outcome, of: run, at: now, &state, &work)
      self.advance(run.delivery, &state, &work)
    }.next
  }

  private func record(
    _ outcome: LifecycleReport.Outcome, of run: HookRun, at now: MonotonicTime,
    _ state: inout State, _ work: inout Work
  ) {
    let duration = run.began.duration(to: now)
    let entry = run.entry
    guard case .skipped(.gone) = outcome else {
      let outcome = run.isCancelled ? .timedOut : outcome
      record(
        outcome, of: entry, in: run.delivery, from: run.began, duration, text: run.errorText)
      return noteLaunch(of: run, outcome, &state)
    }
    // One that was removed while its driver was on the way is not missed.
    guard state.observers[entry.id] != nil else { return }
    recordGone(entry.name, 1, in: run.delivery)
    remove([entry.id], &state, &work)
  }

  /// An observer that could not launch is not asked to save: that would destroy what it could not restore.
  func noteLaunch(
    of run: HookRun, _ outcome: LifecycleReport.Outcome, _ state: inout State
  ) {
    guard case .didFinishLaunching = run.step, outcome.severity > 0 else { return }
    if configuration.terminatesWhenLaunchFails { state.registry.launchFailed(run.entry.id) }
  }

  /// A hook that had been given up has ended after all: its observer can be told things again.
  func endedLate(
    _ run: HookRun, at now: MonotonicTime, _ state: inout State, _ work: inout Work
  ) {
    let entry = run.entry
    guard var runs = state.unfinished[entry.id], runs.contains(where: { $0 === run }) else {
      return
    }
    runs.removeAll { $0 === run }
    state.occupied -= 1
    state.unfinished[entry.id] = runs.isEmpty ? nil : runs
    if runs.isEmpty {
      if !state.postponed.contains(entry.id) { state.registry.setBusy(entry.id, false) }
      if state.observers[entry.id] != nil { entry.needsCore = false }
    }
    let time = run.began.duration(to: now).inSeconds
    tell(
      .endedLate(
        "\(entry.name), \(run.step.name): has ended after \(time) s, after it was given up"),
      &work)
  }

  /// The observer was removed: what it was about to hear it will not; what it hears goes on.
  func withdrawCalls(of entry: ObserverEntry, _ state: inout State, _ work: inout Work) {
    for delivery in state.deliveries {
      // An observer has one call at a time in a delivery.
      guard let run = delivery.running.first(where: { $0.entry === entry }), run.withdraw() else {
        continue
      }
      end(run, &state)
      work.garbage.append(run)
      advance(delivery, &state, &work)
    }
  }

  // MARK: Ends

  private func finish(_ delivery: Delivery, _ state: inout State, _ work: inout Work) {
    state.remove(delivery)
    work.garbage.append(delivery)
    let report = LifecycleReport(cause: delivery.cause, entries: delivery.entries)
    if let waiter = delivery.waiter { work.tellings.append { waiter.resume(returning: report) } }
    if delivery.step.isHealthCheck { observersAnswered(report, &state, &work) }
    guard !delivery.isNested else { return publishBeside(report, of: delivery, state, &work) }
    state.walk.update { $0.add(delivery.entries) }
    let isWalkOver = state.registry.finishStep()
    // What a termination has overtaken is not part of its report.
    let isOvertaken = state.registry.termination != nil && !delivery.isOfTermination
    if isWalkOver || isOvertaken { finishWalk(&state, &work) }
  }

  private func finishWalk(_ state: inout State, _ work: inout Work) {
    guard let walk = state.walk else { return }
    state.walk = nil
    state.progressDeadline = nil
    if walk.kind == .suspend || walk.kind == .termination {
      state.sleepBudget = nil
      releasePostponed(&state)
    }
    let now = now
    var report = LifecycleReport(cause: walk.cause, entries: walk.entries)
    report.isOvertaken = walk.isOvertaken
    report.span = span(of: walk, to: now, state)
    tell(.ended(walk.kind, report, walk.began.duration(to: now), snapshot(state)), &work)
    publish(report, state, &work)
    if case .launch = walk.cause.origin { launchEnded(report, &state, &work) }
    if state.registry.state == .terminated { conclude(report, &state, &work) }
  }

  /// Of a post in a hook, or of a health check, of which only problems are news.
  private func publishBeside(
    _ report: LifecycleReport, of delivery: Delivery, _ state: borrowing State, _ work: inout Work
  ) {
    let problems = report.problems
    if delivery.step.isHealthCheck {
      work.tellings.append { [recorder] in recorder?.didFinish(report) }
    } else {
      publish(report, state, &work)
      if !problems.isEmpty { tell(.problems(problems), &work) }
    }
  }

  private func publish(_ report: LifecycleReport, _ state: borrowing State, _ work: inout Work) {
    let streams = state.streams.values.filter { $0.subject == .reports }
    work.tellings.append { [recorder] in
      recorder?.didFinish(report)
      for stream in streams { stream.yield(report) }
    }
  }

  /// After `pump`: whatever could begin has begun.
  func isIdle(_ state: borrowing State) -> Bool {
    state.deliveries.isEmpty && state.health.round == nil
  }
}
