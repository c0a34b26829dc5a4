// SPDX-License-Identifier: Apache-2.0
/// A notification that observers receive. Each kind has its own type.
///
/// Custom types conform to ``CustomNotification``.
public protocol LifecycleNotification: Sendable {}

/// A custom notification, delivered by ``LifecycleObservable/post(_:)`` or by ``LifecycleRequest/post(_:)`` of a signal
/// map.
///
/// ```swift
/// struct CacheInvalidated: CustomNotification { let key: String }
///
/// let token = lifecycle.observe(CacheInvalidated.self) { cache.drop($0.key) }
/// await lifecycle.post(CacheInvalidated(key: "users"))
/// ```
///
/// The package's own notifications do not conform, since the lifecycle alone sends them. Do not extend them to conform.
public protocol CustomNotification: LifecycleNotification {}

/// A notification that the lifecycle itself delivers. Do not conform to it: custom types conform to ``CustomNotification``.
public protocol StandardNotification: LifecycleNotification, CustomStringConvertible {
  /// The delivery that the hook is part of: its cause, time and deadline.
  var context: LifecycleContext { get }
}

extension StandardNotification {
  /// The notification's type and cause: `DidEnterBackground, SIGUSR1 from pid 4242 uid 0`.
  public var description: String { "\(type(of: self)), \(cause)" }
  /// The cause of the notification.
  public var cause: LifecycleCause { context.cause }
}

/// The daemon was launched: open files and connections. This is the first of all notifications.
public struct DidFinishLaunching: StandardNotification {
  /// The cause, the time and the hook's deadline.
  public let context: LifecycleContext
  /// Makes a notification, to call a hook in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// The daemon enters the foreground: begin or resume work.
public struct WillEnterForeground: StandardNotification {
  /// The cause, the time and the hook's deadline.
  public let context: LifecycleContext
  /// Makes a notification, to call a hook in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// The daemon enters the background: pause. An operator requested it, the machine is about to sleep, or the daemon is
/// about to terminate.
public struct DidEnterBackground: StandardNotification {
  /// The cause, the time and the hook's deadline.
  public let context: LifecycleContext
  /// Makes a notification, to call a hook in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// State should be saved: all that must outlive the process should be on disk when the hook returns.
public struct ShouldSaveState: StandardNotification {
  /// The cause, the time and the hook's deadline.
  public let context: LifecycleContext
  /// Makes a notification, to call a hook in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// The configuration should be read again. A hook throws to report that it rejected the new one and keeps the old one.
public struct ShouldReload: StandardNotification {
  /// The cause, the time and the hook's deadline.
  public let context: LifecycleContext
  /// Makes a notification, to call a hook in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// The machine is about to sleep; the daemon is in the background and has saved.
public struct WillSleep: StandardNotification {
  /// The cause, the time and the hook's deadline.
  public let context: LifecycleContext
  /// Makes a notification, to call a hook in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// The machine has woken up: clocks have jumped, connections are stale.
public struct DidWakeUp: StandardNotification {
  /// The cause, the time and the hook's deadline.
  public let context: LifecycleContext
  /// Makes a notification, to call a hook in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// Memory is short, and tasks wait until some is freed: free caches, shrink pools.
public struct DidReceivePressure: StandardNotification {
  /// The cause, the time and the hook's deadline.
  public let context: LifecycleContext
  /// Makes a notification, to call a hook in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// The watchdog's health check. No ping is sent when a hook throws or does not return in time.
public struct CheckHealth: StandardNotification {
  /// The cause, the time and the hook's deadline.
  public let context: LifecycleContext
  /// Makes a notification, to call a hook in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}

/// The daemon terminates: close files and connections. This is the last notification; state has been saved already.
public struct WillTerminate: StandardNotification {
  /// The cause, the time and the hook's deadline.
  public let context: LifecycleContext
  /// Makes a notification, to call a hook in a test.
  public init(context: LifecycleContext = LifecycleContext()) { self.context = context }
}
