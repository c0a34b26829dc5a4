// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// The end of the launch, the drain, the termination, the exit and the end of the subject.
extension LifecycleMachine {
  mutating func launchEnded(_ report: LifecycleReport) {
    let isFailed = report.severity > 0
    if !isFailed, registry.termination == nil {
      health.arm(at: now, countsRestarts: policy.hasServiceManager)
      effects.publish(.launched)
      warnOfLimits()
    }
    answerLaunch(report)
    guard isFailed else { return }
    stop.failedLaunch = report
    receive(LifecycleEvent(.terminate, cause: LifecycleCause(.launchFailed)))
  }

  /// Answers those who wait for the launch.
  mutating func answerLaunch(_ report: LifecycleReport) {
    guard let waiters = launchWaiters.take() else { return }
    effects.messages.append(.launchEnded(report, to: waiters))
  }

  // MARK: Signals

  /// Whether a signal belongs to the same stop as an earlier one: it neither ends the drain nor escalates.
  mutating func isSameStop(_ event: LifecycleEvent) -> Bool {
    guard case .terminate = event.request, event.cause.signal != nil else { return false }
    let verdict = stop.escalation.receive(
      event.cause, delay: policy.escalationDelay, at: now)
    guard case .isSameStop(let text) = verdict else { return false }
    if let text { effects.publish(.info(text)) }
    return true
  }

  // MARK: The drain

  /// Holds a terminating event back for the drain, or ends the drain because of it. Returns true when the event is
  /// handled.
  mutating func drains(_ event: LifecycleEvent) -> Bool {
    guard case .terminate = event.request, !stop.isLost else { return false }
    guard !stop.isDraining else {
      if event.cause.asksForEnd, event.cause.signal == nil {
        stop.status = stop.status ?? event.cause.status
        return true
      }
      endDrain()
      // A signal during the drain only ends the drain, but it counts: the next one is the third.
      if event.cause.signal != nil { _ = registry.receive(event) }
      return true
    }
    guard policy.stopDelay > .zero, registry.isServing, event.cause.asksForEnd, !isClosed
    else { return false }
    let delay = stop.drain(event, policy, at: now)
    // A conflict within the configuration was logged at the start.
    if delay < policy.stopDelay, StopBudget.drainProblem(policy) == nil {
      effects.publish(.warning(StopBudget.cut(policy, delay)))
    }
    guard delay > .zero else { return false }
    effects.publish(.draining(event.cause, delay))
    requestStopTime()
    return true
  }

  /// Ends the drain: the termination begins.
  mutating func endDrain() {
    guard let event = stop.endDrain() else { return }
    if registry.receive(event) == .terminate { beginTermination() }
  }

  // MARK: The termination

  mutating func beginTermination() {
    stop.begin(policy, audience(of: .willTerminate), at: now)
    if let cause = registry.termination { effects.publish(.terminating(cause)) }
    requestStopTime()
    haltWork()
    health.end()
    for post in registry.requests.takePosts() { refuse(post) }
    answerLaunch(
      LifecycleReport(
        cause: LifecycleCause(.launch), entries: registry.transition?.entries ?? []))
    limitRunning()
    // A daemon that was never launched has nothing to end.
    if registry.state == .terminated, let cause = registry.termination {
      var report = LifecycleReport(cause: cause, entries: [])
      report.span = stop.span(of: Transition(.termination, cause, []), to: now)
      effects.publish(.ended(.termination, report, .zero, snapshot))
      conclude(report)
    }
  }

  /// Whether a stop or a sleep calls anybody after the pauses.
  func audience(of last: NotificationKind) -> StopBudget.Audience {
    StopBudget.Audience(
      saves: registry.members.receive(.kind(.shouldSaveState)),
      last: registry.members.receive(.kind(last)))
  }

  /// Requests the whole budget from a service manager whose limit is unknown: it may be shorter, and would then end in
  /// a kill before the save.
  private mutating func requestStopTime() {
    if knownLimit == nil { publishExtension(until: now) }
  }

  /// Takes the time that the service manager allows for a stop, or for its own; the stop may have begun.
  mutating func allowStop(_ timeout: Duration, isManagers: Bool) {
    let (before, end) = (stop.allowed, stop.budget?.end)
    stop.allow(timeout, isManagers: isManagers, policy, at: now)
    if stop.allowed != before { warnOfLimits() }
    asked.update { $0.next = now }
    if let end, let budget = stop.budget, budget.end != end {
      limitRunning(hasGrown: budget.end > end)
    }
  }

  /// Handles the second signal: hooks that save keep their reserve, all others are cancelled. Of these only WillTerminate
  /// begins later, in the time that the saves leave.
  mutating func expedite() {
    stop.expedite(at: now)
    revokeWork()
    limitRunning()
    let grace = hurriedGrace
    for id in calls.deliveryIDs where !calls[id].budgetStep.isSave {
      for call in calls[id].running where !calls[call].isCancelled && !calls[call].step.isSave {
        cancel(call, grace: grace)
      }
    }
  }

  /// Enough for a hook that reacts to its cancellation. It is taken from the save reserve, since the hook's time is over.
  var hurriedGrace: Duration {
    policy.grace(in: max(.zero, stop.budget.map { now.duration(to: $0.end) } ?? .zero))
  }

  /// Handles the third signal: the process ends at once, after the end with the status that it would have had.
  mutating func exitNow(_ cause: LifecycleCause) {
    let status = stop.exit?.exitStatus ?? 128 + (cause.signal?.rawValue ?? 0)
    effects.exitsWith = status
    // Only a test gets further.
    for id in calls.deliveryIDs {
      for call in calls[id].running.reversed() { abandon(call) }
      let delivery = calls.close(id)
      registry.transition.update { $0.add(delivery.entries) }
      if let post = delivery.post { effects.answer(post, cause) }
    }
    progressDeadline = .distantFuture
    let entries = registry.abort()?.entries ?? []
    conclude(
      LifecycleReport(cause: registry.termination ?? cause, entries: entries), status: status)
  }

  /// Refuses a post that came too late: its report has an entry for each observer that would have received the first of its
  /// type, or after the end, which has let go of them, one entry for all.
  mutating func refuse(_ post: LifecyclePost) {
    let step = LifecycleStep.posted(post)
    let type = ObjectIdentifier(Swift.type(of: post.notification))
    let now = now
    func entry(_ name: ObserverName, _ registration: UInt64) -> LifecycleReport.Entry {
      LifecycleReport.Entry(
        notification: step.reportedType, outcome: .skipped(.overtaken), duration: .zero, name: name,
        began: now, registration: registration)
    }
    if stop.exit != nil {
      return effects.answer(post, entries: [entry(.given("all observers"), 0)])
    }
    if let known = refusals.first(where: { $0.type == type }) {
      return effects.answer(post, entries: known.entries)
    }
    let entries = registry.receivers(of: step)
      .compactMap { registry.members[$0] }.filter { $0.receives(step) }
      .map { entry($0.name, $0.id.value) }
    refusals.append((type, entries))
    effects.answer(post, entries: entries)
  }

  // MARK: The exit

  /// Concludes the termination after WillTerminate: callers that wait receive the exit.
  mutating func conclude(_ report: LifecycleReport, status: Int32? = nil) {
    guard registry.termination != nil else { return }
    let failure = workFailure
    // Work that threw, and a launch that did, count by their own code; of other hooks it counts that they failed.
    let severity = max(
      stop.isLost ? 1 : 0, stop.failedLaunch?.severity ?? 0, stop.overtakenPause?.severity ?? 0,
      report.severity)
    let status =
      status ?? registry.termination?.status ?? stop.status
      ?? (stop.isLost ? nil : failure.map { $0.exitStatus ?? 1 } ?? stop.failedLaunch?.exitStatus)
      ?? ([0, 70, 124] as [Int32])[severity]
    let exit = LifecycleExit(
      exitStatus: status, report: report, failedLaunch: stop.failedLaunch,
      overtakenPause: stop.overtakenPause, error: failure?.error)
    guard stop.end(exit) else { return }
    effects.publish(.terminated(exit))
    effects.messages.append(.exited(exit, to: exitWaiters.take() ?? { _ in }))
    // No more notifications are delivered: an observer that retains its lifecycle is a cycle only until now.
    closeWork()
    let removed = registry.members.removeAll()
    effects.removed += removed
    // A post that was hastened may still wait for its hooks.
    if calls.count > 0 { for member in removed { withdrawCalls(of: member.id) } }
    stop.expectExit(policy, at: now)
  }

  // MARK: The end of the subject

  mutating func close() {
    _ = stop.endDrain()
    if stop.exit == nil { effects.publish(.closed) }
    // No observer receives the posts that wait, or are being delivered.
    for post in registry.requests.takePosts() + calls.deliveries.compactMap(\.post) where !isClosed
    {
      effects.answer(post)
    }
    isClosed = true
    // No step begins beside the calls that run.
    for id in calls.deliveryIDs { setTurn(of: id) }
    closeWork()
    effects.removed += registry.members.removeAll()
  }
}

extension LifecycleCause {
  /// Whether the event requests the end of a daemon that serves, rather than reporting its end.
  fileprivate var asksForEnd: Bool {
    switch origin {
    case .workFailed, .launchFailed: false
    default: true
    }
  }
}
