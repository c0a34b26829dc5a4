// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The time that a termination has, and how it is shared out.
struct StopBudget {
  /// When the last hook must be over.
  private(set) var end: MonotonicTime
  /// Kept for ShouldSaveState; what else there is must end before.
  private var reserve: Duration
  /// Kept for the process's own end after the last hook: at most half, so that a short stop leaves the hooks
  /// some time.
  private(set) var exitGrace: Duration
  /// When the stop began.
  let began: MonotonicTime

  /// The second signal came: no more time can be had.
  private(set) var isHurried = false
  /// A hook has got more time.
  private var isExtended = false

  /// - Parameter allowed: what the service manager allows for the stop, if it has said so.
  init(_ configuration: LifecycleConfiguration, allowed: Duration?, from now: MonotonicTime) {
    let whole = Self.whole(configuration.stopTimeout, allowed: allowed)
    exitGrace = min(configuration.exitGrace ?? .zero, whole / 2)
    let total = max(.zero, whole - exitGrace)
    began = now
    end = now.advanced(by: total)
    reserve = min(configuration.saveReserve, total / 2)
  }

  init(until end: MonotonicTime, reserve: Duration) {
    self.end = end
    self.reserve = reserve
    exitGrace = .zero
    began = end
  }

  /// Something must be left of what the service manager allows: its clock started before ours.
  private static func whole(_ configured: Duration?, allowed: Duration?) -> Duration {
    guard let allowed else { return configured ?? .seconds(90) }
    let safe = allowed - min(.seconds(1), allowed / 10)
    return min(configured ?? safe, safe)
  }

  /// The second signal: what is left is the save reserve.
  mutating func expedite(at now: MonotonicTime) {
    end = min(end, now.advanced(by: reserve))
    isHurried = true
  }

  /// What the service manager allows was not known when the stop began. Never more time than there was, and
  /// none is taken from whoever has got more since: the service manager was notified of that.
  mutating func limit(_ configuration: LifecycleConfiguration, allowed: Duration) {
    let known = StopBudget(configuration, allowed: allowed, from: began)
    guard !isExtended, known.end < end else { return }
    end = known.end
    reserve = min(reserve, known.reserve)
    exitGrace = known.exitGrace
  }

  /// When a daemon that goes on serving for a while must stop that: before the save reserve, and so that a
  /// hook has its time after it, or half of what there is if that is less.
  func drainEnd(_ configuration: LifecycleConfiguration) -> MonotonicTime {
    let free = max(.zero, began.duration(to: end(of: .kind(.didEnterBackground))))
    let hook = max(.zero, configuration.hookDeadline + configuration.cancellationGrace)
    return began.advanced(by: min(configuration.stopDelay, free - min(hook, free / 2)))
  }

  /// Where nothing was left any more, the time counts from now, and the reserve is there again.
  mutating func extend(by extra: Duration, at now: MonotonicTime) {
    if end <= now { end = now.advanced(by: reserve) }
    end = end.advanced(by: max(.zero, extra))
    isExtended = true
  }

  /// When a step must be over. What comes after the save may use what that has left.
  func end(of step: LifecycleStep) -> MonotonicTime {
    switch step.kind {
    case .shouldSaveState, .willTerminate, .willSuspend: end
    default: end.advanced(by: .zero - reserve)
    }
  }

  /// How long the next of `count` groups may take: the step's time fairly shared, so that one stuck saver
  /// does not take the others' chance. Zero: out of time.
  func share(of step: LifecycleStep, among count: Int, at now: MonotonicTime) -> Duration {
    let left = max(.zero, now.duration(to: end(of: step)))
    return step.isSave ? left / max(count, 1) : left
  }
}

extension StopBudget {
  /// What a stop leaves for everything that comes before its save.
  static func timeBeforeSave(_ configuration: LifecycleConfiguration, allowed: Duration?)
    -> Duration
  {
    let zero = MonotonicTime(nanoseconds: 0)
    let budget = StopBudget(configuration, allowed: allowed, from: zero)
    return max(.zero, zero.duration(to: budget.end(of: .kind(.didEnterBackground))))
  }

  /// What is wrong with the configured delay, if that can be seen without knowing what systemd allows.
  static func drainProblem(_ configuration: LifecycleConfiguration) -> String? {
    guard configuration.stopDelay >= .zero else {
      return "stopDelay is negative (\(configuration.stopDelay)): the daemon does not drain."
    }
    let zero = MonotonicTime(nanoseconds: 0)
    let budget = StopBudget(configuration, allowed: nil, from: zero)
    let delay = zero.duration(to: budget.drainEnd(configuration))
    return delay < configuration.stopDelay ? cut(configuration, delay) : nil
  }

  static func cut(_ configuration: LifecycleConfiguration, _ delay: Duration) -> String {
    "The drain delay of \(configuration.stopDelay.forReading) does not fit into the stop budget beside the save"
      + " reserve and the hooks: \(delay.forReading) do. Raise the one (in a container: its grace period), or lower"
      + " the others."
  }
}
