// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// The beginning and the end of a transition, and what is published of it.
extension LifecycleMachine {
  mutating func beginTransition(_ plan: LifecycleRegistry.Plan) {
    var new = ActiveTransition(plan, at: now)
    if plan.kind == .suspend { sleep.suspendBegins(audience(of: .willSuspend), at: now) }
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
    for id in calls.deliveryIDs where !calls[id].isNested {
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

/// The transition that is under way: its cause, and the entries so far. It exists exactly while the registry is in a
/// transition that has begun.
struct ActiveTransition: Sendable {
  /// The interval at which progress is sent to a service manager.
  static let progressInterval = Duration.seconds(1)

  let number: UInt64
  let kind: LifecycleTransition
  let cause: LifecycleCause
  let began: MonotonicTime
  private(set) var entries: [LifecycleReport.Entry] = []
  /// Whether a termination has overtaken it, so that not all of it is done.
  var isOvertaken = false
  /// Whether it notifies again of the foreground, for the second time or later.
  var isRetry = false
  /// The time at which progress is next sent to a service manager; the distant future where there is none.
  var progressDeadline = MonotonicTime.distantFuture

  init(_ plan: LifecycleRegistry.Plan, at now: MonotonicTime) {
    number = plan.transition
    kind = plan.kind
    cause = plan.cause
    began = now
  }

  var isPause: Bool { kind == .background || kind == .suspend }

  /// The first entries are taken as they are, not copied.
  mutating func add(_ new: [LifecycleReport.Entry]) {
    if entries.isEmpty { entries = new } else { entries += new }
  }
}
