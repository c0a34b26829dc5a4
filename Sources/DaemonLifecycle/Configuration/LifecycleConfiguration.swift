// SPDX-License-Identifier: Apache-2.0
public import DaemonSystemd

/// The settings of a subject; every value has a default that suits a service.
public struct LifecycleConfiguration: Sendable {
  /// How long a hook may take before it is cancelled. Default 10 s.
  public var hookTimeout: Duration
  /// How long a cancelled hook may take to end before it is abandoned: the delivery goes on without it. Default 1 s.
  public var cancellationGrace: Duration
  /// How long the whole termination may take, `exitGrace` included. Default `nil`: derived from systemd or the
  /// platform.
  ///
  /// Under systemd the default is `TimeoutStopSec=`, read over the bus, minus a margin of a tenth, at most 1 s; a higher
  /// value is lowered to it. Where it can't be read (no bus, `DynamicUser=`), the time is the value given here, or 90 s,
  /// and is requested from systemd when the stop begins (`EXTEND_TIMEOUT_USEC=`); in a container its grace period.
  ///
  /// Elsewhere the default is the platform's grace period, minus a margin of a tenth, at most 2 s: Fly.io and Nomad 5
  /// s, Cloud Run and a container 10 s, Amazon ECS, Heroku and Kubernetes 30 s; otherwise 90 s. Where the
  /// platform is configured otherwise, set a value, or use ``setStopTimeout(fromEnvironment:preStop:in:)``.
  ///
  /// The deadlines of hooks and the save reserve shrink with it, so that a pause that hangs does not cost the save.
  public var stopTimeout: Duration?
  /// The part of ``stopTimeout`` that is reserved for ShouldSaveState, at most half, if an observer has a hook for it. Default
  /// 10 s. After a second terminating signal it is all the time that is left.
  public var saveReserve: Duration
  /// How long the process may go on after the last hook of `runAndExit` before `_exit` ends it with the same status;
  /// `nil` for no limit. Default 2 s; at most half of ``stopTimeout``.
  public var exitGrace: Duration?
  /// How long after a terminating signal another one escalates the stop. Default 1 s. With `.zero` each signal counts,
  /// with `nil` none after the first.
  ///
  /// One stop often arrives as several signals, as when a wrapper relays what systemd sends to the whole control group.
  /// The second that counts cancels the hooks that do not save, the third ends the process. Unless it is `nil`, a second
  /// Ctrl-C counts at once, a third only when the delay is over. See <doc:ShuttingDownInTime>.
  public var escalationDelay: Duration?
  /// How long a daemon goes on serving, in the foreground, after a stop was requested, so that load balancers learn of
  /// the stop before it refuses work. Default 0.
  ///
  /// Meanwhile a readiness file is removed, systemd has received `STOPPING=1`, tasks go on, and other
  /// notifications are delivered as usual: see <doc:RunningInContainers>. It is part of ``stopTimeout``, and leaves time
  /// for the save and, before that, for one hook or half of the rest, whichever is less. A delay that does not fit is
  /// shortened, with a warning. There is no delay for a daemon in the background, or one whose work has failed.
  public var stopDelay: Duration
  /// The ways in which the daemon is controlled and observed from outside. Default:
  /// ``LifecycleInterfaces/standard``.
  public var interfaces: LifecycleInterfaces
  /// The environment in which the variables of systemd and of platforms are looked up. Default: this process's, as it was
  /// when it was first read.
  public var environment = ServiceEnvironment.current

  /// Makes a configuration with the defaults, except for the values that are given. Each parameter sets the property of
  /// its name.
  public init(
    signals: SignalMap? = nil,
    hookTimeout: Duration = .seconds(10),
    cancellationGrace: Duration = .seconds(1),
    stopTimeout: Duration? = nil,
    saveReserve: Duration = .seconds(10),
    exitGrace: Duration? = .seconds(2),
    escalationDelay: Duration? = .seconds(1),
    stopDelay: Duration = .zero,
    logging: LifecycleLogging? = nil,
    interfaces: LifecycleInterfaces = .standard
  ) {
    self.hookTimeout = hookTimeout
    self.cancellationGrace = cancellationGrace
    self.stopTimeout = stopTimeout
    self.saveReserve = saveReserve
    self.exitGrace = exitGrace
    self.escalationDelay = escalationDelay
    self.stopDelay = stopDelay
    self.interfaces = interfaces
    if let signals { self.signals = signals }
    if let logging { self.logging = logging }
  }

  /// The meaning of each signal: ``LifecycleInterface/signals(_:)`` in the list. Default: ``SignalMap/standard``.
  public var signals: SignalMap {
    get { interfaces.value { if case .signals(let map) = $0 { map } else { nil } } ?? [:] }
    set { interfaces.append(.signals(newValue)) }
  }

  /// What is logged, to the journal where standard error goes there, else to standard error:
  /// ``LifecycleInterface/log(_:)`` in the list. Default ``LifecycleLogging/timelines``; of a list without a log, problems.
  ///
  /// A mock logs problems at most (see `exitResult?.report.timeline`), but all to a log of your own,
  /// ``LifecycleInterface/log(to:)``, which is replaced when this is set.
  public var logging: LifecycleLogging {
    get {
      interfaces.value { if case .log(let logging, _) = $0 { logging } else { nil } } ?? .problems
    }
    set { interfaces.append(.log(newValue)) }
  }

  /// The author's own log; `nil` for none.
  var logQueue: LogQueue? {
    interfaces.value { if case .log(_, let queue) = $0 { queue } else { nil } }
  }

  /// Says where threads wait, a sentence each; `nil` where that is not asked for.
  var trace: (@Sendable () -> [String])? {
    interfaces.value { if case .traces(let trace) = $0 { trace } else { nil } }
  }

  /// Whether it has an interface that only one subject of a process can have.
  var usesService: Bool {
    interfaces.all.contains { if case .service = $0.role { true } else { false } }
  }

  /// Whether such an interface is used, with a service manager that has started the process.
  var isSupervised: Bool { usesService && environment.isSupervised }
}
