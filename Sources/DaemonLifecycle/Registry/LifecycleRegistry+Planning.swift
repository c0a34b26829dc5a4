// SPDX-License-Identifier: Apache-2.0
// Where the daemon is, and what is left to be done for which members. Nothing here changes anything.
extension LifecycleRegistry {
  /// Whether nothing is left to be delivered for the machine's sleep, or for its end.
  var isSleepSettled: Bool {
    termination == nil && !requests.concernSleep && wantsSleep == isAsleep
      && transition?.kind != .sleep
  }

  /// Whether the daemon is in the foreground and not about to leave it.
  var isServing: Bool { state == .foreground && backgroundReasons.isEmpty && termination == nil }

  /// Whether a termination still has to end work.
  var endsWork: Bool {
    guard let transition, transition.kind == .termination else { return true }
    return if case .workEnds? = transition.next { true } else { false }
  }

  /// Whether the launch is under way, and not overtaken. It is not held back, since the hold may depend on it.
  var isLaunchTransition: Bool { transition?.kind == .launch && termination == nil }

  /// Whether nothing is delivered or waits, not even behind a hold.
  var isIdle: Bool {
    guard transition == nil else { return false }
    var copy = self
    copy.holds = 0
    return copy.next() == nil
  }

  // MARK: What is left to be done

  /// Returns the first step that a member has missed and can receive now.
  func missed() -> LifecycleStep? {
    if isMissed(.kind(.didFinishLaunching)) { return .kind(.didFinishLaunching) }
    if !isLaunchTransition, isMissed(.workBegins) { return .workBegins }
    if !isAsleep, isMissed(.kind(.didWakeUp)) { return .kind(.didWakeUp) }
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
    if case .workBegins = step { return isMissed(step) }
    return switch step.kind {
    case .willEnterForeground: backgroundReasons.isEmpty && state == .background
    case .didEnterBackground: state == .foreground
    case .willSleep: wantsSleep && !isAsleep
    case .didWakeUp: isAsleep
    default: true
    }
  }

  // MARK: Plans

  /// Returns the transition for a request; `nil` when nothing is left to do.
  func plannedTransition(for waiting: PendingRequests.Waiting) -> Transition? {
    let kind = waiting.request.transition ?? reachedTransition(for: waiting.request)
    switch waiting.request {
    case .pause, .resume: if kind == .background, state != .foreground { return nil }
    case .sleep, .wakeUp: if wantsSleep == isAsleep { return nil }
    default: break
    }
    return Transition(kind, waiting.cause, waiting.post.map { [.posted($0)] })
  }

  /// The transition to where the reasons lead now, or the machine's sleep.
  func reachedTransition(for request: LifecycleRequest) -> LifecycleTransition {
    if request.concernsSleep { return wantsSleep ? .sleep : .wakeUp }
    return backgroundReasons.isEmpty ? .foreground : .background
  }

  /// Returns the members that should receive a step: the next one, or one that is delivered beside it.
  func receivers(of step: LifecycleStep) -> [ObserverID] {
    let change = step.change
    return receivers(of: step) { $0.shouldReceive(change) }
  }

  /// Returns the members that a termination pauses: those in the foreground, which the state does not say, since an upward
  /// step may have been overtaken midway. A busy member is paused when it is free, or nobody waits for it any longer.
  func receiversOfPause(areBusy: Bool) -> [ObserverID] {
    receivers(of: .kind(.didEnterBackground)) {
      $0.reachedState == .foreground && $0.isBusy == areBusy
    }
  }

  /// Returns the members that satisfy a condition, in the step's order.
  func receivers(
    of step: LifecycleStep, where isIncluded: (LifecycleMembers.ObserverProgress) -> Bool
  ) -> [ObserverID] {
    members.ids(where: isIncluded, reversed: step.isDownward)
  }
}
