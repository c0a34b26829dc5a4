// SPDX-License-Identifier: Apache-2.0
/// The settings of a subject; every value has a default that suits a service.
public struct LifecycleConfiguration: Sendable {
  /// The meaning of each signal. Default: ``SignalMap/standard``.
  public var signals: SignalMap
  /// How long a hook may take before it is cancelled. Default 10 s.
  public var hookTimeout: Duration
  /// How long a cancelled hook may take to end before it is abandoned: the delivery goes on without it. Default 1 s.
  public var cancellationGrace: Duration
  /// How long the whole termination may take, `exitGrace` included. Default `nil`: derived from systemd or the
  /// platform.
  ///
  /// Under systemd the default is `TimeoutStopSec=`, read over the bus, minus a margin of a tenth, at most 1 s; a higher
  /// value is lowered to it. Where it can't be read (no bus, `DynamicUser=`), the time is the value given here, or 90 s,
  /// and is requested from systemd when the stop begins (`EXTEND_TIMEOUT_USEC=`).
  ///
  /// Elsewhere the default is the platform's grace period, minus a margin of a tenth, at most 2 s: Fly.io and Nomad 5
  /// s, Cloud Run and process 1 of a container 10 s, Amazon ECS, Heroku and Kubernetes 30 s; otherwise 90 s. Where the
  /// platform is configured otherwise, set a value, or use ``setStopTimeout(fromEnvironment:preStop:in:)``.
  ///
  /// The deadlines of hooks and the save reserve shrink with it, so that a pause that hangs does not cost the save.
  public var stopTimeout: Duration?
  /// The part of ``stopTimeout`` that is reserved for ShouldSaveState, at most half. Default 10 s. After a second
  /// terminating signal it is all the time that is left.
  public var saveReserve: Duration
  /// How long the process may go on after the last hook of `runAndExit` before `_exit` ends it with the same status;
  /// `nil` for no limit. Default 2 s; at most half of ``stopTimeout``.
  public var exitGrace: Duration?
  /// How long after a terminating signal another one escalates the stop. Default 1 s. With `.zero` each signal counts,
  /// with `nil` none after the first.
  ///
  /// One stop often arrives as several signals, as when a wrapper relays what systemd sends to the whole control group.
  /// The second that counts cancels the hooks that do not save, the third ends the process. A second Ctrl-C counts at
  /// once, a third only when the delay is over. See <doc:StoppingWithoutLoss>.
  public var escalationDelay: Duration?
  /// How long a daemon goes on serving, in the foreground, after a stop was requested, so that load balancers learn of
  /// the stop before it refuses work. Default 0.
  ///
  /// Meanwhile ``readinessFile`` is removed, systemd has received `STOPPING=1`, the body of `run` goes on, and other
  /// notifications are delivered as usual: see <doc:RunningInContainers>. It is part of ``stopTimeout``, and leaves time
  /// for the save and, before that, for one hook or half of the rest, whichever is less. A delay that does not fit is
  /// shortened, with a warning. There is no delay for a daemon in the background or one whose body has ended.
  public var stopDelay: Duration
  /// What is logged: to the journal where standard error goes to the journal, else to standard error. Default
  /// ``LifecycleLogging/all``.
  ///
  /// A mock logs problems at most: see `exit?.report.timeline`.
  public var logging: LifecycleLogging
  /// The absolute path of a file that exists exactly while the daemon is ready: launched, in the foreground, and not
  /// about to leave it. Default `nil`: none.
  ///
  /// It is for a container's readiness probe, or a load balancer's health check:
  ///
  /// ```swift
  /// configuration.readinessFile = "/run/mydaemon/ready"
  /// // readinessProbe: { exec: { command: [test, -e, /run/mydaemon/ready] } }
  /// ```
  ///
  /// It is created when every hook of the launch has ended, and whenever the daemon returns to the foreground. It is
  /// removed as soon as a pause, a suspend or a termination is requested: before any hook is called, even while a hook of
  /// another delivery still runs, and at the beginning of ``stopDelay``.
  ///
  /// It is created atomically, with mode 0600. A process that is killed leaves it behind; the next launch removes the
  /// file at the path first, so every subject needs a file of its own. What fails is logged, and tried again.
  ///
  /// The directory must exist, be writable for the daemon, and be on a local file system, such as an `emptyDir` or
  /// `/run`: the threads that deliver notifications create and remove the file, and must not wait.
  public var readinessFile: String?
  /// The number of an inherited descriptor to which a newline is written when the daemon becomes ready, as s6, dinit,
  /// OpenRC and Finit expect. Default `nil`: the value of the environment variable `NOTIFY_FD`, if the init sets it.
  ///
  /// ```swift
  /// configuration.readinessDescriptor = 3  // s6: a file notification-fd with the line 3
  /// ```
  ///
  /// The newline is written once, when the hooks of the launch have ended, and the descriptor is closed. A launch that
  /// fails closes it without a newline.
  ///
  /// `run` takes the descriptor over. Start before anything that opens descriptors, which might get that
  /// number. One that can't be used, such as a standard stream, one of `LISTEN_FDS`, or no pipe, FIFO or socket, is logged
  /// and ignored. With ``SystemdConfiguration/off``, `NOTIFY_FD` is ignored. See <doc:RunningUnderOtherInits>.
  public var readinessDescriptor: Int32?
  /// The absolute path of a file whose modification time is updated as long as the daemon is healthy. Default `nil`:
  /// none.
  ///
  /// It is for a container's liveness probe:
  ///
  /// ```swift
  /// configuration.livenessFile = "/run/mydaemon/alive"
  /// configuration.exitIfProbed(by: CommandLine.arguments)
  /// // livenessProbe: { exec: { command: [/mydaemon, --probe, alive] } }
  /// ```
  ///
  /// More than twice in each 30 s, or in systemd's `WatchdogSec=` if that is less, Swift's global executor, the main
  /// actor (where anything runs on it) and the observers' `checkHealth` hooks are checked; when all are healthy, the
  /// file's time is set to now. The file is created when the launch has ended. It is updated in the background too, and
  /// during the termination without a check, since the stop has its own limit.
  ///
  /// It is not removed at the end: only its age counts. The probe should allow for 60 s or more, since a failed probe
  /// ends the container. Like ``readinessFile`` it must be on a local file system.
  public var livenessFile: String?
  /// The time within which one check must succeed for ``livenessFile``; shorter in tests.
  package var livenessPeriod = Duration.seconds(30)
  /// Says where threads wait, a sentence each: set by `DaemonLifecycleTraces`.
  package var trace: (@Sendable () -> [String])?
  /// The interfaces of systemd that are used when the daemon runs under it.
  public var systemd: SystemdConfiguration

  /// Makes a configuration with the defaults, except for the values that are given. Each parameter sets the property of
  /// its name.
  public init(
    signals: SignalMap = .standard,
    hookTimeout: Duration = .seconds(10),
    cancellationGrace: Duration = .seconds(1),
    stopTimeout: Duration? = nil,
    saveReserve: Duration = .seconds(10),
    exitGrace: Duration? = .seconds(2),
    escalationDelay: Duration? = .seconds(1),
    stopDelay: Duration = .zero,
    logging: LifecycleLogging = .all,
    readinessFile: String? = nil,
    readinessDescriptor: Int32? = nil,
    livenessFile: String? = nil,
    systemd: SystemdConfiguration = SystemdConfiguration()
  ) {
    self.signals = signals
    self.hookTimeout = hookTimeout
    self.cancellationGrace = cancellationGrace
    self.stopTimeout = stopTimeout
    self.saveReserve = saveReserve
    self.exitGrace = exitGrace
    self.escalationDelay = escalationDelay
    self.stopDelay = stopDelay
    self.logging = logging
    self.readinessFile = readinessFile
    self.readinessDescriptor = readinessDescriptor
    self.livenessFile = livenessFile
    self.systemd = systemd
  }
}

/// What a subject logs.
///
/// The ``LifecycleReport/timeline`` of a stop is one entry of the journal, or text on standard error. The process does not
/// wait for it: if standard error is a full pipe, it is lost.
public enum LifecycleLogging: Sendable, Hashable {
  /// Nothing.
  case off
  /// Each hook that did not complete, other problems, what an operator should know and, in the journal, each transition.
  case problems
  /// The same, and the timeline of every stop.
  case all
}
