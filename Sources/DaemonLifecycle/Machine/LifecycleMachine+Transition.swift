// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// The beginning and the end of a transition, and what is published of it.
extension LifecycleMachine {
  mutating func beginTransition(_ plan: LifecycleRegistry.Plan) {
    var new = ActiveTransition(plan, at: now)
    if plan.kind == .suspend { sleep.suspendBegins(at: now) }
    // Without a service manager, no timer is set for it.
    if policy.hasServiceManager {
      new.progressDeadline = now.advanced(by: ActiveTransition.progressInterval)
    }
    new.isRetry = unentered.isRetrying && plan.kind == .catchUp
    transition = new
    effects.publish(.began(plan.kind, plan.cause, at: now))
  }

  mutating func finishTransition() {
    guard let ended = transition.take() else { return }
    if ended.kind == .reload { enterAgain() }
    if ended.kind == .suspend { sleep.budget = nil }
    var report = LifecycleReport(cause: ended.cause, entries: ended.entries)
    report.isOvertaken = ended.isOvertaken
    report.isRetry = ended.isRetry
    report.span = stop.span(of: ended, to: now)
    if ended.isPause { stop.noteOvertakenPause(report) }
    publishStatus(isDue: true)
    effects.publish(.ended(ended.kind, report, ended.began.duration(to: now), snapshot))
    effects.messages.append(.reported(report, isHealthCheck: false))
    if case .launch = ended.cause.origin { launchEnded(report) }
    if registry.state == .terminated { conclude(report) }
    if stop.budget == nil { asked = nil }
  }

  /// Publishes the progress of the transition when it is due.
  mutating func publishProgress() {
    guard let current = transition, current.progressDeadline <= now else { return }
    transition.update { $0.progressDeadline = now.advanced(by: ActiveTransition.progressInterval) }
    effects.publish(.progress(progress(of: current)))
  }

  func progress(of transition: ActiveTransition) -> LifecycleProgress {
    var (done, waiting, names) = (transition.entries.count, 0, [ObserverName]())
    for id in calls.order where !calls[id].isNested {
      done += calls[id].entries.count
      waiting += calls[id].waiting.count
      names += calls[id].running.compactMap { calls.find($0)?.name }
    }
    let launched = registry.members.ids { $0.reachedState != .launching }
    let planned = registry.steps.reduce(0) { sum, step in
      sum + launched.count { registry.members[$0]?.receives(step) ?? false }
    }
    return LifecycleProgress(
      transition: transition.kind, done: done, total: done + names.count + waiting + planned,
      waitingFor: names, elapsed: transition.began.duration(to: now),
      isRevoked: transition.isPause && registry.requests.containResume
        && registry.backgroundReasons.isEmpty)
  }

  /// Publishes that the machine may sleep once the deliveries for it have ended. A termination that overtakes them
  /// saves in their place, so the machine waits for its end.
  mutating func publishReadyToSleep() {
    guard sleep.isMachineWaiting, stop.exit != nil || registry.isSleepSettled else { return }
    sleep.isMachineWaiting = false
    effects.publish(.readyToSleep)
  }
}
