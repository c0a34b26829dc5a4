// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The end of the daemon: asked for, drained, delivered, and then the process's.
struct Stop: Sendable {
  /// Only moves forward.
  enum Phase: Sendable {
    /// Nobody has asked for the end.
    case serving
    /// It was asked for, and the daemon serves on until then. The registry knows nothing of the event yet.
    case draining(LifecycleEvent, until: MonotonicTime)
    /// The termination has begun. So it has in the registry.
    case stopping(Start)
    /// WillTerminate has been delivered, and the end looks like a kill: the service manager is asked, until then.
    indirect case asking(LifecycleReport, Start, until: MonotonicTime)
    /// WillTerminate has been delivered.
    indirect case ended(LifecycleExit, Start)
  }

  /// How a termination began: at that time, after the drain if there was one.
  struct Start: Sendable {
    let time: MonotonicTime
    /// The transition that was under way: what of it had begun had to end first.
    let overtaken: LifecycleTransition?
  }

  private(set) var phase = Phase.serving
  /// From the drain on.
  private(set) var budget: StopBudget?
  /// Signals that ask for the end, and which of them count.
  var escalation = Escalation()
  /// What the service manager allows, once it has said so.
  private(set) var allowed: Duration?
  /// The service manager has sent a signal to end the daemon, the first one or a later one.
  private var hasBeenOrdered = false
  /// What the service manager was doing with the service when it was last asked; `nil`: nothing, or it was not asked.
  var job: UnitJob?
  /// The launch's report, once it has ended the daemon.
  var failedLaunch: LifecycleReport?
  /// The report of a pause that the termination has overtaken, once that has cut off what it waited for.
  private(set) var overtakenPause: LifecycleReport?
  /// `run` waits for the end, so the exit grace applies to what comes after it.
  private(set) var isAwaited = false
  /// When the process is ended because it has not ended by itself.
  /// The distant future unless it has ended.
  private(set) var exitDeadline = MonotonicTime.distantFuture

  var exit: LifecycleExit? { if case .ended(let exit, _) = phase { exit } else { nil } }
  var isDraining: Bool { if case .draining = phase { true } else { false } }

  var start: Start? {
    switch phase {
    case .serving, .draining: nil
    case .stopping(let start), .asking(_, let start, _), .ended(_, let start): start
    }
  }

  /// The service manager wants the end.
  var isOrdered: Bool { hasBeenOrdered || job?.stopsUnit == true }

  /// When the clock has something to do. All but serving has a budget: nearly always there is none, and nothing of the
  /// phase to be copied.
  var deadline: MonotonicTime {
    guard budget != nil else { return exitDeadline }
    switch phase {
    case .draining(_, let end), .asking(_, _, let end): return end
    case .serving, .stopping, .ended: return exitDeadline
    }
  }

  // MARK: The drain

  /// Begins the drain and returns its length; zero, and nothing changes, if there is no time for one.
  mutating func drain(
    _ event: LifecycleEvent, _ configuration: LifecycleConfiguration, at now: MonotonicTime
  ) -> Duration {
    let budget = StopBudget(configuration, allowed: allowed, from: now)
    let delay = now.duration(to: budget.drainEnd(configuration))
    guard delay > .zero else { return delay }
    self.budget = budget
    phase = .draining(event, until: now.advanced(by: delay))
    return delay
  }

  /// The event that was held back.
  mutating func endDrain() -> LifecycleEvent? {
    guard case .draining(let event, _) = phase else { return nil }
    phase = .serving
    return event
  }

  // MARK: The termination

  mutating func begin(
    _ configuration: LifecycleConfiguration, overtaking transition: LifecycleTransition?,
    at now: MonotonicTime
  ) {
    if budget == nil { budget = StopBudget(configuration, allowed: allowed, from: now) }
    phase = .stopping(Start(time: now, overtaken: transition))
  }

  /// The service manager has said what it allows; the stop may have begun.
  mutating func allow(_ timeout: Duration, _ configuration: LifecycleConfiguration) {
    allowed = timeout
    budget.update { $0.limit(configuration, allowed: timeout) }
    guard let budget else { return }
    switch phase {
    case .draining(let event, let end):
      phase = .draining(event, until: min(end, budget.drainEnd(configuration)))
    case .asking(let report, let start, let end):
      phase = .asking(report, start, until: min(end, budget.end))
    case .serving, .stopping, .ended: break
    }
  }

  mutating func expedite(at now: MonotonicTime) { budget.update { $0.expedite(at: now) } }

  /// The service manager allows for more time. Not after a second signal.
  mutating func extend(by extra: Duration, at now: MonotonicTime) -> Bool {
    guard let budget, !budget.isHurried else { return false }
    self.budget.update { $0.extend(by: extra, at: now) }
    return true
  }

  // MARK: A kill

  mutating func order() { hasBeenOrdered = true }

  /// Holds the exit back, once, for the service manager's answer; false when there is no time for one.
  mutating func ask(_ report: LifecycleReport, at now: MonotonicTime) -> Bool {
    guard case .stopping(let start) = phase, let budget else { return false }
    let end = min(now.advanced(by: KillRule.patience), budget.end)
    guard end > now else { return false }
    phase = .asking(report, start, until: end)
    return true
  }

  /// A pause has ended: kept if the termination has cut off what it waited for.
  mutating func noteOvertakenPause(_ report: LifecycleReport) {
    guard let start else { return }
    let wasCut = report.entries.contains { $0.outcome.severity > 1 && $0.ended >= start.time }
    if wasCut { overtakenPause = report }
  }

  // MARK: The exit

  /// False when it has ended before.
  mutating func end(_ exit: LifecycleExit) -> Bool {
    guard self.exit == nil, let start else { return false }
    phase = .ended(exit, start)
    return true
  }

  mutating func runWaits() { isAwaited = true }

  /// Somebody waits for the end, which has come: the process has the exit grace to end by itself.
  mutating func expectExit(_ configuration: LifecycleConfiguration, at now: MonotonicTime) {
    guard isAwaited, exit != nil, let grace = grace(configuration) else { return }
    exitDeadline = now.advanced(by: grace)
  }

  /// A short stop has a short grace.
  func grace(_ configuration: LifecycleConfiguration) -> Duration? {
    configuration.exitGrace.map { budget?.exitGrace ?? $0 }
  }

  /// The process should have ended by now; true once.
  mutating func isOverdue(at now: MonotonicTime) -> Bool {
    guard exitDeadline <= now else { return false }
    exitDeadline = .distantFuture
    return true
  }
}
