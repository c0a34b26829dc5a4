// SPDX-License-Identifier: Apache-2.0
public import DaemonSystemd

/// The settings of a subject; every value has a default that suits a service.
public struct LifecycleConfiguration: Sendable {
  /// The meaning of each signal. Default: ``SignalMap/standard``.
  public var signals: SignalMap
  /// How long a hook may take until it is cancelled. Default 10 s.
  public var hookDeadline: Duration
  /// How long a cancelled hook may take to end until the delivery goes on without it. Default 1 s.
  public var cancellationGrace: Duration
  /// How long the whole termination may take, `exitGrace` included. Default `nil`: what systemd allows
  /// (`TimeoutStopSec=`, read over the bus) less a margin of a tenth, at most 1 s. Where systemd allows less than a value
  /// given here, the less counts.
  ///
  /// Elsewhere the default is what is usual on the platform, as far as its environment shows which that is, less a margin
  /// of a tenth, at most 2 s: Fly.io and Nomad 5 s, Cloud Run and process 1 of a container 10 s, Amazon ECS, Heroku and
  /// Kubernetes 30 s; the log says at the start which. Where nobody knows, 90 s. Hooks and the save reserve shrink with it,
  /// so that a pause that hangs does not cost the save. Give a value where the daemon is given another time, or see
  /// ``takeStopTimeout(fromEnvironment:preStop:in:)``.
  public var stopTimeout: Duration?
  /// The part of the stop budget that is kept for ShouldSaveState, at most half. Default 10 s. After a second
  /// signal it is all that is left.
  public var saveReserve: Duration
  /// How long the process may go on after the last hook of a `run` until `_exit(code)` ends it; `nil`:
  /// for ever. Default 2 s; at most half of the stop budget.
  public var exitGrace: Duration?
  /// How long after a terminating signal another one means more. Default 1 s. `.zero`: each signal counts. `nil`: none
  /// after the first does.
  ///
  /// One stop often arrives as several signals: a wrapper relays what systemd sends to the whole control group, and
  /// Ctrl-C reaches all that run in the terminal. A signal that comes sooner than this after the last one that counted is
  /// the same stop; the log says so. The second that counts hurries, the third ends the process.
  ///
  /// A second press of Ctrl-C hurries at once. A third counts only when the delay is over, so that a key that is held
  /// does not end the process before the state is saved.
  public var escalationDelay: Duration?
  /// How long a daemon that is asked to end goes on serving, in the foreground, before it is taken down, so
  /// that those who send it work hear of its end first. Default 0.
  ///
  ///     configuration.stopDelay = .seconds(5)  // a period of the readiness probe, and some for the news to spread
  ///
  /// Meanwhile ``readinessFile`` is gone, systemd has been told STOPPING, the body of `run` goes on, and hooks
  /// of anything but the end are called as ever. A second terminating signal ends the delay, and so does
  /// whatever ends the serving: a pause, a suspend, the end of the body. A third ends the process.
  ///
  /// It is part of ``stopTimeout``, and never takes what is kept for saving, nor, before that, the time of one
  /// hook, or half of what there is if that is less. Where it does not fit it is shorter, and a warning says
  /// so. There is none for a daemon that was not serving: one in the background, or whose body has ended.
  ///
  /// With a mock, its clock must be moved: `inject(.sigterm)`, then `advance(by:)`.
  public var stopDelay: Duration
  /// Whether the daemon terminates when a hook of the launch throws or does not end. Default true.
  public var terminatesWhenLaunchFails: Bool
  /// Whether a line on standard error names each hook that did not complete. Default true.
  public var logsProblems: Bool
  /// When a termination logs its ``LifecycleReport/timeline``, for operators: who did what, and who was slow. Default
  /// ``TimelineLogging/always``.
  ///
  /// In one entry where standard error is the journal's, else on standard error. Nothing waits for it: a pipe that is
  /// full loses it. A mock logs none: see `exit?.report.timeline`.
  public var timelineLogging: TimelineLogging
  /// Whether the C library's standard output, which `print` writes to, becomes line buffered at `start()` or `run` where
  /// it is no terminal. Default true: what is printed is in the journal, a container's log or a pipe with the end of its
  /// line.
  ///
  /// Otherwise the C library collects 4 kB or more, which appear late, and not at all after a crash. Each line
  /// is a write(2): false leaves the stream as it is, for a daemon that prints much, or has called setvbuf(3) itself.
  public var lineBuffersOutput: Bool
  /// The absolute path of a file that is there exactly while the daemon is ready: launched, in the foreground, and not
  /// about to leave it. For a container's readiness probe, or a load balancer's check. Default none.
  ///
  ///     configuration.readinessFile = "/run/mydaemon/ready"
  ///     // readinessProbe: { exec: { command: [test, -e, /run/mydaemon/ready] } }
  ///
  /// - It appears when every hook of the launch has ended, and again whenever the daemon is back in the
  ///   foreground. A launch that fails makes none.
  /// - It goes at once when a pause, a suspend or a termination is requested: before any hook is called, also
  ///   while a hook of something else still runs, and at the beginning of ``stopDelay``. A pause that is taken
  ///   back before it was delivered brings it back.
  /// - A reload, a save and pressure leave it where it is.
  ///
  /// It holds three lines: `ready`, `pid 7`, and `since` with the time of day. It appears whole, with mode 0600;
  /// who may search its directory can see that it is there.
  ///
  /// A process that is killed leaves it behind. The next launch begins by removing it; one that another living
  /// process holds is not touched. Nor is anything that is not such a file (a directory, a link, another user's
  /// file, other content): then there is a warning, the daemon goes on, and probes find it not ready. What is wrong
  /// with the path is reported when the daemon starts.
  ///
  /// One that can't be made or removed, because the disk is full or the process has no descriptor left, is tried
  /// again until it works, at most two seconds apart. What the first one needs is reserved before the launch.
  ///
  /// The directory must exist and be the daemon's to write to, and must be on a local file system, such as an
  /// `emptyDir` or `/run`: the file is made and removed by the threads that deliver, which must not wait.
  /// Every subject needs a file of its own.
  public var readinessFile: String?
  /// The number of a descriptor that this process has inherited, to write a newline to when the daemon becomes ready:
  /// how s6, dinit, OpenRC and Finit learn that a service is up. Default `nil`: what the environment variable
  /// `NOTIFY_FD` says, if the init sets one.
  ///
  ///     configuration.readinessDescriptor = 3  // s6: a file notification-fd with the line 3
  ///
  /// The newline is written once, when systemd would be sent `READY=1`: the hooks of the launch have ended. Then the
  /// descriptor is closed. A launch that fails closes it without one.
  ///
  /// The subject owns the descriptor from its initializer on, which makes it close-on-exec, so no child inherits it;
  /// nor does a child find `NOTIFY_FD` in `ServiceEnvironment.childEnvironment(adding:)`. Make the subject before
  /// anything that might open a descriptor and be given that number.
  ///
  /// A number that can't be used is reported when the daemon starts, and the daemon goes on: one up to 2, which is a
  /// standard stream, one of `LISTEN_FDS`, and one that is not open, not open for writing, or not inherited.
  /// ``SystemdConfiguration/off`` ignores `NOTIFY_FD`. <doc:RunningUnderOtherInits> has a service definition for each
  /// init.
  public var readinessDescriptor: Int32?
  /// The absolute path of a file that is touched as long as the daemon is well: systemd's watchdog, for a container's
  /// liveness probe. Default none.
  ///
  ///     configuration.livenessFile = "/run/mydaemon/alive"
  ///     // livenessProbe: { exec: { command: [sh, -c,
  ///     //   'test $(($(date +%s) - $(stat -c %Y /run/mydaemon/alive))) -lt 60'] } }
  ///
  /// More than twice in each ``livenessPeriod``, Swift's global executor, the main actor (where anything runs on it)
  /// and the observers' `checkHealth` hooks are asked, and when all have answered that they are well, the file's time
  /// becomes now. It is made when the launch has ended. A daemon that is paused is as alive as any other. While it
  /// terminates, the file is touched without asking: the stop has a limit of its own.
  ///
  /// The file has no content, and stays behind at the end: only its age counts. Let the probe be patient, twice the
  /// period and more, since a container is ended for it. Like ``readinessFile`` it must be on a local file system.
  public var livenessFile: String?
  /// The time in which the daemon must be well once for ``livenessFile``. Default 30 s. Under a systemd that asks more
  /// often (`WatchdogSec=`), as often as that.
  public var livenessPeriod: Duration
  /// The interfaces of systemd that are used, where systemd is there.
  public var systemd: SystemdConfiguration

  /// A configuration with the defaults, except for the values that are given.
  public init(
    signals: SignalMap = .standard,
    hookDeadline: Duration = .seconds(10),
    cancellationGrace: Duration = .seconds(1),
    stopTimeout: Duration? = nil,
    saveReserve: Duration = .seconds(10),
    exitGrace: Duration? = .seconds(2),
    escalationDelay: Duration? = .seconds(1),
    stopDelay: Duration = .zero,
    terminatesWhenLaunchFails: Bool = true,
    logsProblems: Bool = true,
    timelineLogging: TimelineLogging = .always,
    lineBuffersOutput: Bool = true,
    readinessFile: String? = nil,
    readinessDescriptor: Int32? = nil,
    livenessFile: String? = nil,
    livenessPeriod: Duration = .seconds(30),
    systemd: SystemdConfiguration = SystemdConfiguration()
  ) {
    self.signals = signals
    self.hookDeadline = hookDeadline
    self.cancellationGrace = cancellationGrace
    self.stopTimeout = stopTimeout
    self.saveReserve = saveReserve
    self.exitGrace = exitGrace
    self.escalationDelay = escalationDelay
    self.stopDelay = stopDelay
    self.terminatesWhenLaunchFails = terminatesWhenLaunchFails
    self.logsProblems = logsProblems
    self.timelineLogging = timelineLogging
    self.lineBuffersOutput = lineBuffersOutput
    self.readinessFile = readinessFile
    self.readinessDescriptor = readinessDescriptor
    self.livenessFile = livenessFile
    self.livenessPeriod = livenessPeriod
    self.systemd = systemd
  }
}

/// Which terminations log their timeline.
public enum TimelineLogging: Sendable, Hashable {
  /// Each one.
  case always
  /// None.
  case never
  /// Those with a hook that did not complete, that a second signal has hurried, or that took longer than this.
  case problemsOrSlower(than: Duration)
}

// The names of 0.1.
extension LifecycleConfiguration {
  /// The name of 0.1 for ``stopTimeout``.
  @available(*, deprecated, renamed: "stopTimeout")
  public var stopBudget: Duration? {
    get { stopTimeout }
    set { stopTimeout = newValue }
  }

  /// The name of 0.1 for ``stopDelay``.
  @available(*, deprecated, renamed: "stopDelay")
  public var drainDelay: Duration {
    get { stopDelay }
    set { stopDelay = newValue }
  }

  /// What 0.1 had in place of ``timelineLogging``.
  @available(*, deprecated, message: "timelineLogging says it, and more")
  public var logsTimeline: Bool {
    get { timelineLogging != .never }
    set { timelineLogging = newValue ? .always : .never }
  }

  /// The name of 0.1 for ``takeStopTimeout(fromEnvironment:preStop:in:)``.
  @available(*, deprecated, renamed: "takeStopTimeout(fromEnvironment:preStop:in:)")
  @discardableResult
  public mutating func takeStopBudget(
    fromEnvironment name: String, preStop: Duration = .zero,
    in environment: ServiceEnvironment = .current
  ) throws(LifecycleError) -> Duration? {
    try takeStopTimeout(fromEnvironment: name, preStop: preStop, in: environment)
  }
}
