// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

@testable import DaemonLifecycle

extension StopBudget {
  /// When the hooks of a stop for a notification must be over.
  func end(of kind: NotificationKind) -> MonotonicTime {
    switch kind {
    case .shouldSaveState: endOfSaves
    case .willTerminate: end
    default: endBeforeSaves
    }
  }
}

/// What an observer's hooks have seen of the daemon, and which hook must not follow: the oracle of simulation and
/// explorer.
struct ObserverHistory: Sendable {
  private(set) var isLaunched = false
  private(set) var isInForeground = false
  private(set) var isAsleep = false
  private(set) var isTerminated = false
  /// Set by whoever sees how the hook of the launch ended.
  var hasLaunchFailed = false
  /// The same of the last hook for the foreground.
  var hasMissedForeground = false

  /// Nobody enters the foreground of a daemon whose launch has failed.
  static func problem(of exit: LifecycleExit) -> String? {
    let launch = exit.failedLaunch?.entries ?? []
    let hasFailed = launch.contains {
      if case .skipped = $0.outcome { return false }
      return $0.notification == DidFinishLaunching.self && $0.severity > 0
    }
    return hasFailed && launch.contains { $0.notification == WillEnterForeground.self }
      ? "a failed launch enters the foreground" : nil
  }

  /// In a stop, an observer that could be called before the save was called, and was called to save, whatever another did;
  /// unless a second signal, or something outside, has cut the time short.
  static func missedCall(in exit: LifecycleExit, of budget: StopBudget?) -> String? {
    guard let budget, !budget.isHurried else { return nil }
    let missed = exit.report.entries.first {
      guard case .skipped(.outOfTime) = $0.outcome else { return false }
      let time: Duration =
        switch NotificationKind($0.notification) {
        case .didEnterBackground: budget.began.duration(to: budget.endBeforeSaves)
        case .shouldSaveState: budget.endBeforeSaves.duration(to: budget.endOfSaves)
        default: .zero
        }
      return time >= .seconds(1)
    }
    return missed.map { "another took the time of \($0)" }
  }

  /// In a stop, nobody was skipped for want of time while there was time, however short it was.
  ///
  /// - Parameters:
  ///   - end: When the stop was over: one that was skipped has no time of its own, and the next that was called has begun
  ///     after it.
  ///   - takenBack: Those whose hooks had begun long before.
  static func skippedInTime(
    in exit: LifecycleExit, at end: MonotonicTime, of budget: StopBudget?, _ takenBack: [UInt64]
  ) -> String? {
    guard let budget, !budget.isHurried else { return nil }
    var later = end
    for entry in exit.report.entries.reversed() {
      guard case .skipped(let reason) = entry.outcome else {
        later = takenBack.contains(entry.registration) ? entry.ended : entry.began
        continue
      }
      // At the last call, beside one that runs still and is recorded after it.
      guard case .outOfTime = reason,
        let kind = NotificationKind(entry.notification),
        max(later, entry.began).duration(to: budget.end(of: kind)) >= .milliseconds(3)
      else { continue }
      return "skipped for want of time, and there is time"
    }
    return nil
  }

  /// What is wrong with its state while the daemon is at rest. One whose last hook for the foreground failed has not
  /// entered it for certain, nor does a retry that never began.
  func problemAtRest(_ registry: LifecycleRegistry) -> String? {
    if hasLaunchFailed { return nil }
    if !isLaunched { return "never launched" }
    let isInPlace = isInForeground == (registry.state == .foreground)
    if !hasMissedForeground, !isInPlace {
      return "at rest an observer is not where the daemon is"
    }
    return isAsleep && !registry.isAsleep ? "at rest an observer sleeps on" : nil
  }

  /// A hook failed, or did not end in time.
  mutating func noteFailure(of step: LifecycleStep) {
    switch step.kind {
    case .didFinishLaunching: hasLaunchFailed = true
    case .willEnterForeground: hasMissedForeground = true
    default: break
    }
  }

  /// A hook was called; what is wrong with that.
  mutating func receive(_ step: LifecycleStep) -> String? {
    switch step.kind {
    case .didFinishLaunching:
      defer { isLaunched = true }
      return isLaunched ? "launched twice" : nil
    case .willEnterForeground:
      defer { (isInForeground, hasMissedForeground) = (true, false) }
      return !isLaunched || isInForeground && !hasMissedForeground
        ? "in the foreground from nowhere" : nil
    case .didEnterBackground:
      defer { isInForeground = false }
      return isInForeground ? nil : "left a foreground that it was not in"
    case .willSleep:
      defer { isAsleep = true }
      return isAsleep || isInForeground && !hasMissedForeground
        ? "suspended at the wrong time" : nil
    case .didWakeUp:
      defer { isAsleep = false }
      return isAsleep ? nil : "resumed without having been suspended"
    case .willTerminate:
      isTerminated = true
      return nil
    case .shouldSaveState:
      return !isLaunched || hasLaunchFailed ? "saves what it never restored" : nil
    default: return nil
    }
  }
}
