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
  /// Under systemd the default is `TimeoutStopSec=`, read over the bus, minus a margin of a tenth, at most 1 s; a higher value
  /// is lowered to it. Where `TimeoutStopSec=` can't be read (no bus, `DynamicUser=`), the time is the value given here, else a
  /// container's grace period, else 90 s. It is requested from systemd when the stop begins (`EXTEND_TIMEOUT_USEC=`).
  ///
  /// Elsewhere the default is the platform's grace period, minus a margin of a tenth, at most 2 s: Fly.io and Nomad 5
  /// s, Cloud Run and a container 10 s, Amazon ECS, Heroku and Kubernetes 30 s; otherwise 90 s. Where the
  /// platform is configured otherwise, set a value, or use ``setStopTimeout(fromEnvironment:preStop:in:)``.
  ///
  /// The deadlines of hooks and the save reserve shrink with it: a hanging pause does not cost the save.
  public var stopTimeout: Duration?
  /// The part of ``stopTimeout`` that is reserved for ShouldSaveState, at most half, if an observer has a hook for it. Default
  /// 10 s. After a second terminating signal it is all the time that is left.
  public var saveReserve: Duration
  /// How long the exit of `runAndExit` may take after the last hook. Then `_exit` ends the process with the same
  /// status. `nil`: no limit. Default 2 s; at most half of ``stopTimeout``.
  public var exitGrace: Duration?
  /// How long after a terminating signal another one escalates the stop. Default 1 s. With `.zero` every signal counts,
  /// with `nil` only the first.
  ///
  /// One stop often arrives as several signals: a wrapper relays the signal that systemd sends to the whole control group.
  /// The second that counts cancels the hooks that do not save, the third ends the process. A second Ctrl-C counts at once,
  /// unless the delay is `nil`; a third, like all others, only after the delay. See <doc:ShuttingDownInTime>.
  public var escalationDelay: Duration?
  /// How long a daemon goes on serving, in the foreground, after a stop was requested, so that load balancers learn of
  /// the stop before it refuses work. Default 0.
  ///
  /// Meanwhile a readiness file is removed, systemd has received `STOPPING=1`, tasks go on, and other notifications are
  /// delivered as usual: see <doc:RunningInContainers>. The delay is part of ``stopTimeout``. It is shortened, with a
  /// warning, to leave time for the save and, before that, for one hook or half of the rest, whichever is less. There
  /// is no delay in the background, or after work has failed.
  public var stopDelay: Duration
  /// The ways in which the daemon is controlled and observed from outside. Default:
  /// ``LifecycleInterfaces/standard``.
  public var interfaces: LifecycleInterfaces
  /// The environment in which the variables of systemd and of platforms are looked up. Default: this process's, as it was
  /// when it was first read.
  public var environment = ServiceEnvironment.current

  /// Makes a configuration with the defaults, except for the values that are given. Each parameter sets the property of
  /// its name; `environment` has none.
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

  /// How much is logged, to the journal if standard error goes there, else to standard error: ``LifecycleInterface/log(_:)`` in
  /// the list. Default ``LifecycleLogging/timelines``; without a log in the list, problems.
  ///
  /// A mock logs problems at most (see `exitResult?.report.timeline`), but everything to a log of your own,
  /// ``LifecycleInterface/log(to:)``. Setting this replaces such a log.
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
