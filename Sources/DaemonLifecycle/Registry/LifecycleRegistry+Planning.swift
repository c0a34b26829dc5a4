// SPDX-License-Identifier: Apache-2.0
// Where the daemon is, what is left to be done, and for whom. Nothing here changes anything.
extension LifecycleRegistry {
  /// Whether a transition is under way: a step is being delivered, waits, or is held back.
  var isInTransition: Bool { current != nil || !steps.isEmpty }

  /// Whether nothing is left to be delivered for the machine's sleep, or for its end.
  var isSleepSettled: Bool {
    termination == nil && !requests.concernSleep && wantsSleep == isSuspended
      && !(isInTransition && transitionKind == .suspend)
  }

  /// Whether the daemon is in the foreground and not about to leave it.
  var isServing: Bool { state == .foreground && backgroundReasons.isEmpty && termination == nil }

  /// Whether work is still to end in the termination.
  var endsWork: Bool { if case .workEnds? = steps.first { true } else { false } }

  /// Whether the launch is under way. It is not held back, since the hold may depend on it.
  var isLaunchTransition: Bool { transitionKind == .launch && isInTransition }

  /// Whether nothing is delivered or waits, not even behind a hold.
  var isIdle: Bool {
    guard current == nil else { return false }
    var copy = self
    copy.holds = 0
    return copy.next() == nil
  }

  // MARK: What is left to be done

  /// Returns the first step that a member has missed and can receive now.
  func missed() -> LifecycleStep? {
    if isMissed(.kind(.didFinishLaunching)) { return .kind(.didFinishLaunching) }
    if !isLaunchTransition, isMissed(.workBegins) { return .workBegins }
    if !isSuspended, isMissed(.kind(.didResume)) { return .kind(.didResume) }
    let last = LifecycleStep.kind(
      state == .foreground ? .willEnterForeground : .didEnterBackground)
    return isMissed(last) ? last : nil
  }

  func isMissed(_ step: LifecycleStep) -> Bool {
    let change = step.change
    return members.contains { !$0.isBusy && $0.shouldReceive(change) }
  }

  /// Whether a step of the transition under way is still what the daemon should do.
  func isStillRequested(_ step: LifecycleStep) -> Bool {
    switch step.kind {
    case .willEnterForeground: backgroundReasons.isEmpty && state == .background
    case .didEnterBackground: state == .foreground
    case .willSuspend: wantsSleep && !isSuspended
    case .didResume: isSuspended
    default: true
    }
  }

  // MARK: Plans

  /// Returns the transition for a request, and its steps; none when nothing is left to do.
  func plannedTransition(for waiting: PendingRequests.Waiting) -> (
    LifecycleTransition, ArraySlice<LifecycleStep>
  ) {
    let kind = waiting.request.transition ?? reachedTransition(for: waiting.request)
    switch waiting.request {
    case .pause, .resume:
      return (kind, kind == .background && state != .foreground ? [] : kind.row.steps[...])
    case .suspend, .wakeUp: return (kind, wantsSleep == isSuspended ? [] : kind.row.steps[...])
    case .post: return (kind, waiting.post.map { [.posted($0)] } ?? [])
    default: return (kind, kind.row.steps[...])
    }
  }

  /// The transition to where the reasons lead now, or the machine's sleep.
  func reachedTransition(for request: LifecycleRequest) -> LifecycleTransition {
    if request.concernsSleep { return wantsSleep ? .suspend : .resume }
    return backgroundReasons.isEmpty ? .foreground : .background
  }

  /// Plans a step with all members that should receive it: the next one, or one that is delivered beside it.
  func plan(_ step: LifecycleStep, cause: LifecycleCause) -> Plan {
    let change = step.change
    return plan(step, cause: cause) { $0.shouldReceive(change) }
  }

  /// Whether a termination pauses a member now: one in the foreground, which the state does not say, since an upward step may
  /// have been overtaken midway. One that is busy is paused when it is free, or nobody waits for it any longer.
  func isToPause(_ member: LifecycleMembers.ObserverProgress) -> Bool {
    member.reachedState == .foreground && !member.isBusy
  }

  func pausePlan(to isIncluded: (LifecycleMembers.ObserverProgress) -> Bool) -> Plan {
    plan(.kind(.didEnterBackground), cause: termination ?? LifecycleCause(.api), to: isIncluded)
  }

  /// Plans a step with the members that satisfy a condition.
  func plan(
    _ step: LifecycleStep, cause: LifecycleCause,
    to isIncluded: (LifecycleMembers.ObserverProgress) -> Bool
  ) -> Plan {
    Plan(
      step: step, cause: cause,
      members: members.ids(where: isIncluded, reversed: step.isDownward),
      transition: transitionNumber, kind: transitionKind, isOfTermination: termination != nil)
  }
}
