// SPDX-License-Identifier: Apache-2.0
/// What observers get: one type per kind of notification, the package's and your own.
///
/// Conform your own types to ``CustomNotification``.
public protocol LifecycleNotification: Sendable {}

/// A notification of your own: what ``LifecycleObservable/post(_:)`` and a signal map's `.post` deliver.
///
/// ```swift
/// struct CacheInvalidated: CustomNotification { let region: String }
///
/// let token = lifecycle.observe(CacheInvalidated.self) { cache.drop($0.region) }
/// await lifecycle.post(CacheInvalidated(region: "eu"))
/// ```
///
/// The package's own types do not conform: what they say is true only when the lifecycle says it.
public protocol CustomNotification: LifecycleNotification {}

/// A notification of the package's; conform your own types to ``CustomNotification``.
@_documentation(visibility: internal)
public protocol _PackageNotification: LifecycleNotification, CustomStringConvertible {
  /// What a hook can ask about the delivery that it is part of.
  var context: LifecycleContext { get set }
}

extension _PackageNotification {
  /// Its type and its cause: `DidEnterBackground, SIGUSR1 from pid 4242 uid 0`.
  public var description: String { "\(type(of: self)), \(cause)" }
  /// Why this happens.
  public var cause: LifecycleCause { context.cause }
  /// When the hook will be cancelled, on the subject's clock.
  public var deadline: LifecycleClock.Instant { context.deadline }
  /// When the delivery of this notification began.
  public var time: LifecycleClock.Instant { context.time }
}

/// The daemon has been started: open what you need. The first of all notifications.
public struct DidFinishLaunching: _PackageNotification {
  /// Why this happens, and how long its hook has.
  public var context: LifecycleContext
  /// For calling a hook by hand, in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// The daemon is about to do its work (again).
public struct WillEnterForeground: _PackageNotification {
  /// Why this happens, and how long its hook has.
  public var context: LifecycleContext
  /// For calling a hook by hand, in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// The daemon must pause: an operator asked, the machine will sleep, or it is about to terminate.
public struct DidEnterBackground: _PackageNotification {
  /// Why this happens, and how long its hook has.
  public var context: LifecycleContext
  /// For calling a hook by hand, in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// Whatever must outlive the process should be on disk when the hook returns.
public struct ShouldSaveState: _PackageNotification {
  /// Why this happens, and how long its hook has.
  public var context: LifecycleContext
  /// For calling a hook by hand, in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// The configuration should be read again; throw to say that it was rejected and the old one stays.
public struct ShouldReload: _PackageNotification {
  /// Why this happens, and how long its hook has.
  public var context: LifecycleContext
  /// For calling a hook by hand, in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// The machine is about to sleep; the daemon is in the background and has saved.
public struct WillSuspend: _PackageNotification {
  /// Why this happens, and how long its hook has.
  public var context: LifecycleContext
  /// For calling a hook by hand, in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// The machine has woken up: clocks have jumped, connections are stale.
public struct DidResume: _PackageNotification {
  /// Why this happens, and how long its hook has.
  public var context: LifecycleContext
  /// For calling a hook by hand, in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// A resource is short: free caches, shrink pools.
public struct DidReceivePressure: _PackageNotification {
  /// What the kernel reports pressure for (PSI, Linux 4.20).
  public enum Resource: String, Sendable, CaseIterable, CustomStringConvertible {
    /// Tasks wait for memory that has to be freed first.
    case memory
    /// Tasks wait for a processor.
    case cpu
    /// Tasks wait for disks.
    case io

    public var description: String { rawValue }
  }

  /// What is short.
  public let resource: Resource
  /// Why this happens, and how long its hook has.
  public var context: LifecycleContext
  /// For calling a hook by hand, in a test.
  public init(resource: Resource, context: LifecycleContext = LifecycleContext()) {
    self.resource = resource
    self.context = context
  }
}

/// The watchdog asks whether all is well: throw, or do not return in time, to have the ping withheld.
public struct CheckHealth: _PackageNotification {
  /// Why this happens, and how long its hook has.
  public var context: LifecycleContext
  /// For calling a hook by hand, in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// The last notification: close what is open. State has been saved already.
public struct WillTerminate: _PackageNotification {
  /// Why this happens, and how long its hook has.
  public var context: LifecycleContext
  /// For calling a hook by hand, in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}
