// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The time of a termination, and how it is divided.
struct StopBudget {
  /// The time at which the last hook must have ended.
  private(set) var end: MonotonicTime
  /// The time reserved for ShouldSaveState; everything else must end before.
  private var reserve: Duration
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
    began = now
    end = now.advanced(by: total)
    reserve = min(policy.saveReserve, total / 2)
  }

  init(until end: MonotonicTime, reserve: Duration) {
    self.end = end
    self.reserve = reserve
    exitGrace = .zero
    began = end
  }

  /// Returns the whole time, with a margin to what the service manager allows, since its clock started earlier.
  private static func whole(_ configured: Duration?, allowed: Duration?) -> Duration {
    guard let allowed else { return configured ?? .seconds(90) }
    let safe = allowed - min(.seconds(1), allowed / 10)
    return min(configured ?? safe, safe)
  }

  /// Handles the second signal: only the save reserve is left.
  mutating func expedite(at now: MonotonicTime) {
    end = min(end, now.advanced(by: reserve))
    isHurried = true
  }

  /// Takes the time that the service manager allows, which was not known when the stop began, or has changed. It does not
  /// shorten an extension, of which the service manager was notified, and adds nothing after a second signal. A time that is
  /// nearly over leaves the reserve, half of it for what is before the saves.
  mutating func allow(
    _ allowed: Duration, _ policy: LifecycleMachine.Policy, at now: MonotonicTime
  ) {
    let known = StopBudget(policy, allowed: allowed, from: began)
    guard known.end < end ? !isExtended : !isHurried else { return }
    end = max(known.end, min(end, now.advanced(by: known.reserve)))
    reserve = min(known.reserve, max(.zero, now.duration(to: end)) / 2)
    exitGrace = known.exitGrace
  }

  /// Returns the time at which a drain must end: before the save reserve, with the time of one hook left, or half of
  /// the rest if that is less.
  func drainEnd(_ policy: LifecycleMachine.Policy) -> MonotonicTime {
    let free = max(.zero, began.duration(to: end(of: .kind(.didEnterBackground))))
    let hook = policy.hookTimeout + policy.cancellationGrace
    return began.advanced(by: min(policy.stopDelay, free - min(hook, free / 2)))
  }

  /// Extends the budget. If nothing was left, the time counts from now, and the reserve is restored.
  mutating func extend(by extra: Duration, at now: MonotonicTime) {
    if end <= now { end = now.advanced(by: reserve) }
    end = end.advanced(by: max(.zero, extra))
    isExtended = true
  }

  /// Returns the time at which a step must be over. Steps after the save may use its remaining time.
  func end(of step: LifecycleStep) -> MonotonicTime {
    switch step.kind {
    case .shouldSaveState, .willTerminate, .willSuspend: end
    default: end.advanced(by: .zero - reserve)
    }
  }

  /// The least share, or half of what is left if that is less, so that one that hangs leaves the others some: where there are
  /// so many groups that their equal shares are of no use, what each leaves is enough for the next.
  private static let leastShare = Duration.milliseconds(100)

  /// Returns how long a group may take beside others that come after it: an equal share of the step's time, so that one
  /// hook that hangs does not take the others' time. What it leaves is theirs. Zero when no time is left.
  ///
  /// A group with a limit of its own, such as a drain's, claims that limit first. Where there is not enough for all claims,
  /// none leaves another less than an equal part. A second, or half of an equal share, is kept for each group.
  func share(
    of step: LifecycleStep, at now: MonotonicTime, claim: Duration = .zero,
    beside others: Needs = Needs()
  ) -> Duration {
    let time = time(of: step, at: now)
    let groups = others.groups + 1
    let kept = min(others.kept, time / groups)
    let room = time - kept * groups
    let own = min(claim, max(room / (others.claims + 1), room - others.claimed))
    let share = kept + own + max(.zero, room - claim - others.claimed) / groups
    return max(share, min(Self.leastShare, time / 2))
  }

  /// Returns what is kept for each of some groups, whatever others claim. It is found once: those that hang would take a part
  /// of it from group to group.
  func kept(for groups: Int, of step: LifecycleStep, at now: MonotonicTime) -> Duration {
    min(.seconds(1), time(of: step, at: now) / groups / 2)
  }

  private func time(of step: LifecycleStep, at now: MonotonicTime) -> Duration {
    max(.zero, now.duration(to: end(of: step)))
  }

  /// What groups need of a budget: how many they are, how many of them claim a limit of their own, and the sum of that.
  struct Needs: Sendable {
    private(set) var (groups, claims, claimed) = (0, 0, Duration.zero)
    /// What each of them, and the one beside them, has in any case.
    var kept = Duration.zero

    mutating func add(_ calls: ArraySlice<Delivery.PlannedCall>, claim: Bool = true) {
      for call in calls where !call.isTogether { count(1, claim ? call.claim : .zero) }
    }

    mutating func addGroup() { count(1, .zero) }

    mutating func remove(_ claim: Duration) { count(-1, claim) }

    private mutating func count(_ sign: Int, _ claim: Duration) {
      groups += sign
      if claim > .zero { (claims, claimed) = (claims + sign, claimed + claim * sign) }
    }
  }
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
