/// What a subject can be told when it is made; every value has a default that suits a service.
public struct LifecycleConfiguration: Sendable {
  /// Which signal asks for what.
  public var signals: SignalMap
  /// How long a hook may take until it is cancelled. Default 10 s.
  public var hookDeadline: Duration
  /// How long a cancelled hook may take to end until the delivery goes on without it. Default 1 s.
  public var cancellationGrace: Duration
  /// How long the whole termination may take, `exitGrace` included. Default `nil`: what systemd allows
  /// (`TimeoutStopSec=`, read over the bus) less a margin of a tenth, at most 1 s; else 90 s, as its
  /// `DefaultTimeoutStopSec=`. Where systemd allows less than a value given here, the less counts; in a
  /// container, give a value below its grace period.
  public var stopBudget: Duration?
  /// What of the stop budget is kept for ShouldSaveState, at most half. Default 10 s. After a second
  /// signal it is all that is left.
  public var saveReserve: Duration
  /// How long the process may go on after the last hook of a `run` until `_exit(code)` ends it; `nil`:
  /// for ever. Default 2 s; at most half of the stop budget.
  public var exitGrace: Duration?
  /// Whether the daemon terminates when a hook of the launch throws or does not end. Default true.
  public var terminatesWhenLaunchFails: Bool
  /// Whether a line on standard error names each hook that did not complete. Default true.
  public var logsProblems: Bool
  /// Which of systemd's interfaces are used, where systemd is there.
  public var systemd: SystemdConfiguration

  /// The defaults, but for what is named.
  public init(
    signals: SignalMap = .standard,
    hookDeadline: Duration = .seconds(10),
    cancellationGrace: Duration = .seconds(1),
    stopBudget: Duration? = nil,
    saveReserve: Duration = .seconds(10),
    exitGrace: Duration? = .seconds(2),
    terminatesWhenLaunchFails: Bool = true,
    logsProblems: Bool = true,
    systemd: SystemdConfiguration = SystemdConfiguration()
  ) {
    self.signals = signals
    self.hookDeadline = hookDeadline
    self.cancellationGrace = cancellationGrace
    self.stopBudget = stopBudget
    self.saveReserve = saveReserve
    self.exitGrace = exitGrace
    self.terminatesWhenLaunchFails = terminatesWhenLaunchFails
    self.logsProblems = logsProblems
    self.systemd = systemd
  }
}
