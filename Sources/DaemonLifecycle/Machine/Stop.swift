// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The stop of the daemon: its request, the drain, the termination, and the end of the process.
struct Stop: Sendable {
  /// The phase of the stop. It only moves forward, but for the moment between the end of the drain and the termination.
  enum Phase: Sendable {
    /// No stop was requested, or the drain has just ended.
    case serving
    /// A stop was requested, and the daemon goes on serving until this time. The registry has not received the event
    /// yet.
    case draining(LifecycleEvent, until: MonotonicTime)
    /// The termination has begun, also in the registry, after the drain if there was one.
    case stopping(since: MonotonicTime)
    /// WillTerminate has been delivered.
    indirect case ended(LifecycleExit, since: MonotonicTime)
  }

  private(set) var phase = Phase.serving
  /// The budget, from the drain on.
  private(set) var budget: StopBudget?
  /// The rule for which terminating signals count.
  var escalation = Escalation()
  /// The time that the service manager allows this daemon, once it is known.
  private var ownLimit: Duration?
  /// The time that a user's service manager has for its own stop, of which all of its services are part.
  private var managersLimit: Duration?
  /// Whether the daemon could not go on, which is a failure.
  var isLost = false
  /// The launch's report, once a failed launch has ended the daemon.
  var failedLaunch: LifecycleReport?
  /// The report of a pause that the termination has overtaken, and cut off.
  private(set) var overtakenPause: LifecycleReport?
  /// What had to end before the termination: the drain, and the steps of another transition that had begun.
  private var preludes: [LifecycleSpan.Prelude] = []
  /// The status to exit with that was given during the drain.
  var status: Int32?
  /// Whether the process exits after the end, so that the exit grace applies.
  var isExitExpected = false
  /// The time at which the process is ended if it has not exited; the distant future before the end.
  private(set) var exitDeadline = MonotonicTime.distantFuture

  var exit: LifecycleExit? { if case .ended(let exit, _) = phase { exit } else { nil } }
  /// The shorter of the times that are known.
  var allowed: Duration? {
    guard let ownLimit, let managersLimit else { return ownLimit ?? managersLimit }
    return min(ownLimit, managersLimit)
  }
  var isDraining: Bool { if case .draining = phase { true } else { false } }

  /// The beginning of the termination.
  var start: MonotonicTime? {
    switch phase {
    case .serving, .draining: nil
    case .stopping(let start), .ended(_, let start): start
    }
  }

  /// The time of the clock's next action. Without a budget the phase is `serving`, and need not be copied.
  var deadline: MonotonicTime {
    if budget != nil, case .draining(_, let end) = phase { return end }
    return exitDeadline
  }

  // MARK: The drain

  /// Begins the drain and returns its length; zero, and nothing changes, if there is no time for one.
  mutating func drain(
    _ event: LifecycleEvent, _ policy: LifecycleMachine.Policy, at now: MonotonicTime
  ) -> Duration {
    let budget = StopBudget(policy, allowed: allowed, from: now)
    let delay = now.duration(to: budget.drainEnd(policy))
    guard delay > .zero else { return delay }
    self.budget = budget
    phase = .draining(event, until: now.advanced(by: delay))
    return delay
  }

  /// Ends the drain, and returns the event that was held back.
  mutating func endDrain() -> LifecycleEvent? {
    guard case .draining(let event, _) = phase else { return nil }
    phase = .serving
    return event
  }

  // MARK: The termination

  mutating func begin(
    _ policy: LifecycleMachine.Policy, _ audience: StopBudget.Audience, at now: MonotonicTime
  ) {
    var budget = self.budget ?? StopBudget(policy, allowed: allowed, from: now)
    budget.audience = audience
    (self.budget, phase) = (budget, .stopping(since: now))
    if budget.began < now { precede("(stopDelay)", "served on", from: budget.began, to: now) }
  }

  /// Takes the time that the service manager allows, or has for its own stop; the stop may have begun.
  mutating func allow(
    _ timeout: Duration, isManagers: Bool = false, _ policy: LifecycleMachine.Policy,
    at now: MonotonicTime
  ) {
    if isManagers { managersLimit = timeout } else { ownLimit = timeout }
    guard let allowed else { return }
    budget.update { $0.allow(allowed, policy, at: now) }
    if let budget, case .draining(let event, _) = phase {
      phase = .draining(event, until: budget.drainEnd(policy))
    }
  }

  /// No observer saves any more: everything before the saves has their time.
  mutating func freeReserve() { budget.update { $0.audience.saves = false } }

  mutating func expedite(at now: MonotonicTime) { budget.update { $0.expedite(at: now) } }

  /// Extends the budget, which the service manager allows.
  mutating func extend(by extra: Duration, at now: MonotonicTime) {
    budget.update { $0.extend(by: extra, at: now) }
  }

  /// Notes the end of the transition that was under way, and keeps the report of a pause if the termination has cut it off.
  mutating func noteOvertaken(
    _ ended: Transition, _ report: LifecycleReport, at now: MonotonicTime
  ) {
    guard let start, ended.kind != .termination else { return }
    // Shorter times are not worth a line.
    if start.duration(to: now) >= .milliseconds(1) {
      precede("(\(ended.kind.row.event))", "had to end first", from: start, to: now)
    }
    let wasCut = report.entries.contains {
      // A hook that still runs is waited for once more, and is in the stop's report.
      $0.outcome.severity > 1 && $0.ended >= start && $0.outcome != .abandoned(.running)
    }
    if ended.isPause, wasCut { overtakenPause = report }
  }

  private mutating func precede(
    _ name: String, _ words: String, from began: MonotonicTime, to ended: MonotonicTime
  ) {
    preludes.append(.init(name: name, words: words, began: began, ended: ended))
  }

  // MARK: The exit

  /// Ends the stop. Returns false when it has ended before.
  mutating func end(_ exit: LifecycleExit) -> Bool {
    guard self.exit == nil, let start else { return false }
    phase = .ended(exit, since: start)
    return true
  }

  /// Begins the exit grace after the end, if a caller waits for it: the process should exit within it.
  mutating func expectExit(_ policy: LifecycleMachine.Policy, at now: MonotonicTime) {
    guard isExitExpected, exit != nil, let grace = grace(policy) else { return }
    exitDeadline = now.advanced(by: grace)
  }

  /// Returns the exit grace, which is shorter for a short stop.
  func grace(_ policy: LifecycleMachine.Policy) -> Duration? {
    policy.exitGrace.map { budget?.exitGrace ?? $0 }
  }

  /// Returns true, once, when the process should have exited by now.
  mutating func isOverdue(at now: MonotonicTime) -> Bool {
    guard exitDeadline <= now else { return false }
    exitDeadline = .distantFuture
    return true
  }
}

extension Stop {
  /// Returns the span of a transition; that of a termination begins with its request.
  func span(of transition: Transition, to now: MonotonicTime) -> LifecycleSpan {
    guard transition.kind == .termination, let budget else {
      return LifecycleSpan(event: transition.kind.row.event, began: transition.began, ended: now)
    }
    return LifecycleSpan(
      event: transition.kind.row.event, began: budget.began, ended: now,
      budget: budget.began.duration(to: budget.end) + budget.exitGrace,
      isHurried: budget.isHurried, prelude: preludes)
  }
}
