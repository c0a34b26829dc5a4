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
  /// How long a daemon that is asked to end goes on serving, in the foreground, before it is taken down, so
  /// that those who send it work hear of its end first. Default 0.
  ///
  ///     configuration.drainDelay = .seconds(5)  // a period of the readiness probe, and some for the news to spread
  ///
  /// Meanwhile ``readinessFile`` is gone, systemd has been told STOPPING, the body of `run` goes on, and hooks
  /// of anything but the end are called as ever. A second terminating signal ends the delay, and so does
  /// whatever ends the serving: a pause, a suspend, the end of the body. A third ends the process.
  ///
  /// It is part of ``stopBudget``, and never takes what is kept for saving, nor, before that, the time of one
  /// hook, or half of what there is if that is less. Where it does not fit it is shorter, and a warning says
  /// so. There is none for a daemon that was not serving: one in the background, or whose body has ended.
  ///
  /// With a mock, its clock must be moved: `inject(.sigterm)`, then `advance(by:)`.
  public var drainDelay: Duration
  /// Whether the daemon terminates when a hook of the launch throws or does not end. Default true.
  public var terminatesWhenLaunchFails: Bool
  /// Whether a line on standard error names each hook that did not complete. Default true.
  public var logsProblems: Bool
  /// Whether a termination ends with its ``LifecycleTimeline``, for operators: who did what, and who was slow.
  /// Default true.
  ///
  /// In one entry where standard error is the journal's, else on standard error; with block characters, and colour for
  /// what went wrong, where that is a terminal with a UTF-8 locale. Nothing waits for it: a pipe that is full loses it.
  /// A mock logs none: look at `exit?.report.timeline`.
  public var logsTimeline: Bool
  /// A file that is there exactly while the daemon is ready. Default none.
  public var readinessFile: ReadinessFile?
  /// A file that is touched as long as the daemon is well. Default none.
  public var livenessFile: LivenessFile?
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
    drainDelay: Duration = .zero,
    terminatesWhenLaunchFails: Bool = true,
    logsProblems: Bool = true,
    logsTimeline: Bool = true,
    readinessFile: ReadinessFile? = nil,
    livenessFile: LivenessFile? = nil,
    systemd: SystemdConfiguration = SystemdConfiguration()
  ) {
    self.signals = signals
    self.hookDeadline = hookDeadline
    self.cancellationGrace = cancellationGrace
    self.stopBudget = stopBudget
    self.saveReserve = saveReserve
    self.exitGrace = exitGrace
    self.drainDelay = drainDelay
    self.terminatesWhenLaunchFails = terminatesWhenLaunchFails
    self.logsProblems = logsProblems
    self.logsTimeline = logsTimeline
    self.readinessFile = readinessFile
    self.livenessFile = livenessFile
    self.systemd = systemd
  }
}
