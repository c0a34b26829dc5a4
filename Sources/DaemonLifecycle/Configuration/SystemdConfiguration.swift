// SPDX-License-Identifier: Apache-2.0
public import DaemonSystemd

/// The interfaces of systemd that a subject uses.
///
/// Most are on by default. Without systemd they do nothing. Each can be switched off.
///
/// ```swift
/// var configuration = LifecycleConfiguration()
/// configuration.systemd.watchedUnits = ["postgresql.service"]
/// configuration.systemd.suspend = false
/// let lifecycle = LifecycleSubject(configuration: configuration)
/// ```
public struct SystemdConfiguration: Sendable {
  /// Whether `READY=1`, `RELOADING=1`, `STOPPING=1` and `EXTEND_TIMEOUT_USEC=` are sent. Default true. Source:
  /// sd_notify(3).
  public var notifies = true
  /// Whether `STATUS=` is sent along: the state, its time and cause, the progress of a slow stop, and problems. Default
  /// true.
  public var sendsStatus = true
  /// Whether the watchdog of `WatchdogSec=` is pinged, as long as Swift's global executor, the main actor (where
  /// anything runs on it) and the observers' `checkHealth` hooks respond. Default true.
  ///
  /// The hooks are called every three eighths of that time, the executors are checked every second time: systemd ends a
  /// daemon whose executors hang after at most one and a half times `WatchdogSec=`.
  public var watchdog = true
  /// Whether `TimeoutStopSec=` is read over the bus, for ``LifecycleConfiguration/stopTimeout``. Default true.
  public var readsStopTimeout = true
  /// Whether the job that terminates the service is read over the bus: see ``LifecycleObservable/unitJob(within:)``.
  /// Default true.
  public var readsUnitJob = true
  /// Whether a suspend of the machine is observed, and delayed until the hooks have ended if logind grants a delay
  /// lock, which requires root or a polkit rule. Default true.
  public var suspend = true
  /// Whether a shutdown of the machine is observed before SIGTERM arrives: the state is saved, and the shutdown is
  /// delayed until then if logind grants a delay lock. Default false, since SIGTERM saves too and a lock delays the
  /// whole machine.
  public var shutdown = false
  /// Whether a user service is in the background while its user has no active, unlocked session. Default false. It has
  /// no effect in a system service.
  public var session = false
  /// Units of the same service manager without which the daemon is in the background until they are active:
  /// `["postgresql.service"]`. Default: none.
  public var watchedUnits: [String] = []
  /// The resources whose pressure is reported. Default `nil`: those for which systemd has set a variable
  /// (`MemoryPressureWatch=`; from systemd 261 also `CPUPressureWatch=` and `IOPressureWatch=`).
  ///
  /// The resources of a set for which systemd has set no variable are watched in the process's control group, else on
  /// the whole machine; those that systemd has switched off are not watched.
  public var pressure: Set<DidReceivePressure.Resource>?
  /// Whether transitions and problems are journal entries with fields, if standard error goes to the journal. Default
  /// true. Otherwise problems are lines on standard error.
  public var journal = true
  /// The environment in which systemd's variables are looked up. Default: this process's, as it was when it was first
  /// read.
  public var environment = ServiceEnvironment.current

  /// Makes a configuration with the defaults.
  public init() {}

  /// Whether anything is used that only one subject of a process can have.
  var usesService: Bool {
    notifies || watchdog || readsStopTimeout || readsUnitJob || suspend || shutdown || session
      || pressure == nil
  }

  /// Whether a service manager is used that has started the process.
  var isSupervised: Bool { usesService && environment.isSupervised }

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
