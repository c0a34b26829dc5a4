// SPDX-License-Identifier: Apache-2.0
public import DaemonSystemd

/// The interfaces of systemd that a subject uses.
///
/// What is safe is on by default where systemd is there, and silent where it is not; each part can be
/// switched off.
///
/// ```swift
/// var configuration = LifecycleConfiguration()
/// configuration.systemd.watchedUnits = ["postgresql.service"]
/// configuration.systemd.suspend = false
/// let lifecycle = LifecycleSubject(configuration: configuration)
/// ```
public struct SystemdConfiguration: Sendable {
  /// Whether READY, RELOADING, STOPPING and EXTEND_TIMEOUT_USEC are sent. Default true. See sd_notify(3).
  public var notifies = true
  /// Whether `STATUS=` is sent along: the state, since when and by whom, how far a slow stop has come, and
  /// what went wrong. Default true.
  public var sendsStatus = true
  /// Whether the watchdog of `WatchdogSec=` is pinged, as long as Swift's global executor, the main actor
  /// (where anything runs on it) and the observers' `checkHealth` hooks answer. Default true.
  ///
  /// The hooks are asked every three eighths of that time, the executors every second time: systemd ends a daemon whose
  /// executors hang after at most one and a half times `WatchdogSec=`.
  public var watchdog = true
  /// Whether `TimeoutStopSec=` is read over the bus, for the stop budget. Default true.
  public var readsStopTimeout = true
  /// Whether systemd is asked over the bus, when the termination begins, if it is a restart or a stop: see
  /// `unitJob(within:)`. Default true.
  public var readsUnitJob = true
  /// Whether a SIGTERM that the service manager has not sent, and for which it has no job that stops the service, makes
  /// the daemon end with status 143, so that `Restart=on-failure` starts it again after a stray kill(1). Default false:
  /// status 0, after which systemd leaves it down.
  ///
  /// ```swift
  /// configuration.systemd.exitsWithFailureWhenKilled = true
  /// ```
  ///
  /// All else is as in a stop: the drain, the hooks, the report. A hook or body that fails keeps its own status.
  /// These are not kills: `systemctl stop` and `systemctl kill`, a signal of the parent or of the daemon itself,
  /// SIGINT, SIGHUP, a call of `terminate()`, the end of the body. A signal from systemd after a kill turns it into a
  /// stop. Where systemd has not started the process, nothing is a kill.
  ///
  /// `ExecStop=` may kill, too. So systemd is asked over the bus for its job when the last hook has ended; the exit
  /// waits for the answer for at most a second of what the stop has left. If there is none, or ``readsUnitJob`` is
  /// off, the sender alone decides, and it was a kill: a stop that ends with 143 leaves the unit down but marked as
  /// failed, while a kill that ends with 0 leaves the service dead.
  ///
  /// A sender outside of the process's pid namespace (`PrivatePIDs=`, a container) may be the service manager, so it
  /// counts as that. In a mock, process 1 is the service manager: `send(.sigterm, fromPID: 4242)` is a kill, unless
  /// `setUnitJob(.stop)` was called.
  public var exitsWithFailureWhenKilled = false
  /// Whether a suspend of the machine is heard of, and delayed until the hooks have ended where logind
  /// grants a delay lock, which takes root or polkit. Default true.
  public var suspend = true
  /// Whether a shutdown of the machine is heard of before SIGTERM comes: it saves state, and is delayed
  /// until that is done where logind grants a delay lock. Default false: SIGTERM saves too, and a lock
  /// delays the whole machine.
  public var shutdown = false
  /// Whether a user service is in the background while its user has no active, unlocked session. Default
  /// false. Without effect in a system service.
  public var session = false
  /// Units of the daemon's own service manager without which it is in the background, until they are
  /// active: `["postgresql.service"]`. Default none.
  public var watchedUnits: [String] = []
  /// The resources whose pressure is reported. Default `nil`: those for which systemd has set a variable
  /// (`MemoryPressureWatch=`; from 261 also `CPUPressureWatch=` and `IOPressureWatch=`). Of a set, those for which it
  /// has set none are watched in the process's control group, else on the whole machine; those that it has switched
  /// off are not watched.
  public var pressure: Set<DidReceivePressure.Resource>?
  /// Whether transitions and problems go to the journal, with fields, where standard error does. Default
  /// true; else problems are lines on standard error, as they are without a journal.
  public var journal = true
  /// The variables that systemd has set for this process. Default: the environment, as it was when it was first read.
  public var environment = ServiceEnvironment.current

  /// A configuration with the defaults.
  public init() {}

  /// Whether anything is used of which a process has but one.
  var usesService: Bool {
    notifies || watchdog || readsStopTimeout || readsUnitJob || suspend || shutdown || session
      || pressure == nil || exitsWithFailureWhenKilled
  }

  /// A configuration in which nothing of systemd is used.
  public static let off: SystemdConfiguration = {
    var off = SystemdConfiguration()
    off.notifies = false
    off.sendsStatus = false
    off.watchdog = false
    off.readsStopTimeout = false
    off.readsUnitJob = false
    off.suspend = false
    off.pressure = []
    off.journal = false
    return off
  }()
}
