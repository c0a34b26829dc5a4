// SPDX-License-Identifier: Apache-2.0
public import DaemonSystemd

/// The interfaces of systemd that a subject uses.
///
/// Most are on by default. Without systemd they do nothing.
///
/// ```swift
/// var configuration = LifecycleConfiguration()
/// configuration.systemd.inputs.append(.unit("postgresql.service"))
/// configuration.systemd.inputs.removeAll { $0 == .sleep }
/// let lifecycle = LifecycleSubject(configuration: configuration)
/// ```
public struct SystemdConfiguration: Sendable {
  /// Whether `READY=1`, `RELOADING=1`, `STOPPING=1` and `EXTEND_TIMEOUT_USEC=` are sent, and in `STATUS=` the state,
  /// its time and cause, the progress of a slow stop, and problems. Default true. Source: sd_notify(3).
  public var notifies = true
  /// Whether the watchdog of `WatchdogSec=` is pinged, as long as Swift's global executor, the main actor (where
  /// anything runs on it) and the observers' `checkHealth` hooks respond. Default true.
  ///
  /// All are checked every three quarters of that time, and once more after three eighths when one fails: systemd ends a
  /// daemon that hangs after at most one and a half times `WatchdogSec=`.
  public var watchdog = true
  /// What is read from systemd, logind and the kernel. Default: ``Input/stopTimeout``, ``Input/unitJob``,
  /// ``Input/sleep`` and ``Input/memoryPressure``. The order does not matter, nor whether one is there twice.
  public var inputs: [Input] = [.stopTimeout, .unitJob, .sleep, .memoryPressure]
  /// Whether transitions and problems are journal entries with fields, if standard error goes to the journal. Default
  /// true. Otherwise problems are lines on standard error.
  public var journal = true
  /// The environment in which systemd's variables are looked up. Default: this process's, as it was when it was first
  /// read.
  public var environment = ServiceEnvironment.current

  /// Makes a configuration with the defaults.
  public init() {}

  /// An input from systemd, logind or the kernel. Except for memory pressure it arrives over D-Bus; where there is no
  /// bus, a line is logged. Minor versions may add cases.
  public enum Input: Hashable, Sendable {
    /// `TimeoutStopSec=` of the service, for ``LifecycleConfiguration/stopTimeout``.
    case stopTimeout
    /// The job that terminates the service: see ``LifecycleObservable/unitJob(within:)``.
    case unitJob
    /// A suspend of the machine, which is delayed until the hooks have ended if logind grants a delay lock; that
    /// requires root or a polkit rule.
    case sleep
    /// Memory pressure, as the service's unit configures it (`MemoryPressureWatch=`), else in the process's control
    /// group, if it may watch that.
    case memoryPressure
    /// A unit of the same service manager, such as `"postgresql.service"`: the daemon is in the background until it is
    /// active.
    case unit(String)
  }

  /// Whether anything is used that only one subject of a process can have.
  var usesService: Bool { notifies || watchdog || !inputs.isEmpty }

  /// Whether a service manager is used that has started the process.
  var isSupervised: Bool { usesService && environment.isSupervised }

  /// A configuration in which nothing of systemd is used.
  public static let off: SystemdConfiguration = {
    var off = SystemdConfiguration()
    off.notifies = false
    off.watchdog = false
    off.inputs = []
    off.journal = false
    return off
  }()
}
