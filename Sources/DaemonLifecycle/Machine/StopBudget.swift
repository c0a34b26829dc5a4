// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The time of a termination, or of a sleep that logind waits for, and its parts.
///
/// Everything before the saves leaves them their reserve, and the saves leave WillTerminate, or WillSleep, a moment: where an
/// observer is called for it.
struct StopBudget {
  /// Whether a stop calls anybody after the pauses.
  struct Audience {
    var saves = true
    var last = false
  }

  /// The time at which the last hook must have ended.
  private(set) var end: MonotonicTime
  /// The time reserved for ShouldSaveState, in nanoseconds.
  private var reserve: Int64
  /// The time for the last notification, and for observers that have had no turn: all that are left are called then.
  private(set) var moment: Int64
  var audience = Audience()
  /// The time reserved for the process's exit after the last hook: at most half, so that a short stop leaves the hooks
  /// some time.
  private(set) var exitGrace: Duration
  let began: MonotonicTime

  /// Whether a second signal arrived: the time can't be extended any more.
  private(set) var isHurried = false
  /// Whether a hook's deadline was extended.
  private var isExtended = false

  /// - Parameter allowed: The time that the service manager allows for the stop, if it is known.
  init(_ policy: LifecycleMachine.Policy, allowed: Duration?, from now: MonotonicTime) {
    let whole = Self.whole(policy.stopTimeout, allowed: allowed)
    exitGrace = min(policy.exitGrace ?? .zero, whole / 2)
    let total = max(.zero, whole - exitGrace)
    (began, end, moment) = (now, now, 0)
    reserve = min(policy.saveReserve, total / 2).saturatedNanoseconds
    set(end: now.advanced(by: total), at: now)
  }

  /// Half of the time is for the saves.
  init(from now: MonotonicTime, until end: MonotonicTime, _ audience: Audience) {
    (began, self.end, moment, exitGrace, self.audience) = (now, now, 0, .zero, audience)
    reserve = (end.nanoseconds - now.nanoseconds) / 2
    set(end: end, at: now)
  }

  /// The moment is a sixteenth of what is left, at most a second.
  private mutating func set(end: MonotonicTime, at now: MonotonicTime) {
    self.end = end
    moment = min(1_000_000_000, max(0, end.nanoseconds - now.nanoseconds) / 16)
  }

  /// Returns the whole time, with a margin to what the service manager allows, since its clock started earlier.
  private static func whole(_ configured: Duration?, allowed: Duration?) -> Duration {
    guard let allowed else { return configured ?? .seconds(90) }
    let safe = allowed - min(.seconds(1), allowed / 10)
    return min(configured ?? safe, safe)
  }

  /// Handles the second signal: only the save reserve is left.
  mutating func expedite(at now: MonotonicTime) {
    set(end: min(end, now.advanced(byNanoseconds: reserve)), at: now)
    isHurried = true
  }

  /// Takes the time that the service manager allows, which was not known when the stop began, or has changed. It does not
  /// shorten an extension, of which the service manager was notified, and adds nothing after a second signal. A time that
  /// is nearly over leaves the reserve, half of it before the saves.
  mutating func allow(
    _ allowed: Duration, _ policy: LifecycleMachine.Policy, at now: MonotonicTime
  ) {
    let known = StopBudget(policy, allowed: allowed, from: began)
    guard known.end != end, known.end < end ? !isExtended : !isHurried else { return }
    set(end: max(known.end, min(end, now.advanced(byNanoseconds: known.reserve))), at: now)
    let left = max(0, end.nanoseconds - now.nanoseconds)
    // After a second signal all that is left is for the saves.
    reserve = min(known.reserve, isHurried ? left : left / 2)
    exitGrace = known.exitGrace
  }

  /// Returns the time at which a drain must end: before the save reserve, with the time of one hook left, or half of
  /// the rest if that is less.
  func drainEnd(_ policy: LifecycleMachine.Policy) -> MonotonicTime {
    let free = max(.zero, began.duration(to: endBeforeSaves))
    let hook = policy.hookTimeout + policy.cancellationGrace
    return began.advanced(by: min(policy.stopDelay, free - min(hook, free / 2)))
  }

  /// Extends the budget. If nothing was left, the time counts from now, and the reserve is restored.
  mutating func extend(by extra: Duration, at now: MonotonicTime) {
    let end = end <= now ? now.advanced(byNanoseconds: reserve) : end
    set(end: end.advanced(by: max(.zero, extra)), at: now)
    isExtended = true
  }

  /// When everything before the saves must be over. After a second signal it is, even if nobody saves.
  var endBeforeSaves: MonotonicTime {
    audience.saves || isHurried ? endOfSaves.advanced(byNanoseconds: -reserve) : endOfSaves
  }

  /// When the saves must be over.
  var endOfSaves: MonotonicTime { audience.last ? end.advanced(byNanoseconds: -moment) : end }
}

extension StopBudget {
  /// Returns a warning about the configured delay, if it is too long whatever systemd allows.
  static func drainProblem(_ policy: LifecycleMachine.Policy) -> String? {
    if policy.stopDelay <= .zero { return nil }
    let zero = MonotonicTime(nanoseconds: 0)
    let budget = StopBudget(policy, allowed: nil, from: zero)
    let delay = zero.duration(to: budget.drainEnd(policy))
    return delay < policy.stopDelay ? cut(policy, delay) : nil
  }

  static func cut(_ policy: LifecycleMachine.Policy, _ delay: Duration) -> String {
    "stopDelay is \(policy.stopDelay.forReading), but only \(delay.forReading) fit into the stop beside saveReserve and the"
      + " hooks. Raise the stop timeout (in a container: its grace period), or lower saveReserve or hookTimeout."
  }
}
