// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// The beginning and the end of a transition, and what is published of it.
extension LifecycleMachine {
  private static let progressInterval = Duration.seconds(1)

  mutating func beginTransition(_ cause: LifecycleCause) {
    guard let kind = registry.transition?.kind else { return }
    if kind == .sleep { sleep.begins(audience(of: .willSleep), at: now) }
    let now = now
    registry.transition.update { $0.began = now }
    // Without a service manager, no timer is set for it.
    if policy.hasServiceManager { progressDeadline = now.advanced(by: Self.progressInterval) }
    effects.publish(.began(kind, cause, at: now))
  }

  /// Ends the transition under way, if that is over: with its last step, or because the rest of it was cancelled or replaced.
  /// It may release observers that have something to receive.
  mutating func finishTransition() {
    guard let ended = registry.endTransition() else { return }
    progressDeadline = .distantFuture
    if ended.kind == .reload { enterAgain() }
    if ended.kind == .sleep { sleep.budget = nil }
    var report = LifecycleReport(cause: ended.cause, entries: ended.entries)
    report.isOvertaken = ended.isOvertaken
    report.isRetry = unentered.isRetrying && ended.kind == .catchUp
    unentered.isRetrying = false
    report.span = stop.span(of: ended, to: now)
    stop.noteOvertaken(ended, report, at: now)
    publishStatus(isDue: true)
    effects.publish(.ended(ended.kind, report, ended.began.duration(to: now), snapshot))
    effects.messages.append(.reported(report, isHealthCheck: false))
    if case .launch = ended.cause.origin { launchEnded(report) }
    if registry.state == .terminated { conclude(report) }
    if stop.budget == nil { asked = nil }
  }

  /// Publishes the progress of the transition when it is due.
  mutating func publishProgress() {
    guard progressDeadline <= now, let transition = registry.transition else { return }
    progressDeadline = now.advanced(by: Self.progressInterval)
    effects.publish(.progress(progress(of: transition)))
  }

  func progress(of transition: Transition) -> LifecycleProgress {
    var (done, waiting, names) = (transition.entries.count, 0, [ObserverName]())
    for id in calls.deliveryIDs where !calls[id].isNested {
      done += calls[id].entries.count
      waiting += calls[id].waiting.count
      names += calls[id].running.compactMap { calls.find($0)?.name }
    }
    let launched = registry.members.ids { $0.reachedState != .launching }
    let planned = transition.left.reduce(0) { sum, step in
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
