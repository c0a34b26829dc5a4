// SPDX-License-Identifier: Apache-2.0
/// A component that hears of the lifecycle: the root of the hook protocols, with no requirement itself.
///
/// Adopt the protocols of the hooks that you have:
///
/// ```swift
/// actor Poller: BackgroundObserver, StateObserver {
///   func didEnterBackground(_ notification: DidEnterBackground) { stopPolling() }
///   func shouldSaveState(_ notification: ShouldSaveState) async throws { try await save() }
/// }
/// ```
///
/// A hook is found wherever it is adopted: by the type, in an extension, by a subclass, or in another module.
///
/// No hook has a default, so a misspelt one does not compile. Classes, actors and `@MainActor` types
/// conform; a hook may be synchronous, isolated, or neither throw nor wait. A class's hook runs on the
/// subject's own thread, an actor's in the actor. A subject holds its observers weakly: own them.
public protocol LifecycleObserver: AnyObject, Sendable {
  // Which hooks a type has, as far as that is known where it adopts this protocol: `DeclaredHooks.swift` has all of the
  // answers, and nobody else is to give one.
  static var _launchHook: _DeclaredHook? { get }
  static var _foregroundHook: _DeclaredHook? { get }
  static var _backgroundHook: _DeclaredHook? { get }
  static var _stateHook: _DeclaredHook? { get }
  static var _reloadHook: _DeclaredHook? { get }
  static var _suspendHook: _DeclaredHook? { get }
  static var _resumeHook: _DeclaredHook? { get }
  static var _pressureHook: _DeclaredHook? { get }
  static var _healthHook: _DeclaredHook? { get }
  static var _terminationHook: _DeclaredHook? { get }
  static var _wildcardHook: _DeclaredHook? { get }
  static var _actorCast: _ActorCast? { get }
}

/// Hears that the daemon was launched.
public protocol LaunchObserver: LifecycleObserver {
  /// Open what you need. An error ends the daemon, unless the configuration says otherwise; the observer
  /// is not asked to save then, since it may have nothing but what it failed to restore.
  func didFinishLaunching(_ notification: DidFinishLaunching) async throws
}

/// Hears that the foreground begins.
public protocol ForegroundObserver: LifecycleObserver {
  /// Begin to work, or go on with it.
  func willEnterForeground(_ notification: WillEnterForeground) async throws
}

/// Hears that the daemon has been paused.
public protocol BackgroundObserver: LifecycleObserver {
  /// Pause: when the hook returns, nothing more happens until the foreground comes back.
  func didEnterBackground(_ notification: DidEnterBackground) async throws
}

/// Hears when to save.
public protocol StateObserver: LifecycleObserver {
  /// Save what must outlive the process. Called when entering the background, before a reload and before
  /// the end; the last thing that a terminating daemon gives up.
  func shouldSaveState(_ notification: ShouldSaveState) async throws
}

/// Hears when to read the configuration again.
public protocol ReloadObserver: LifecycleObserver {
  /// Read the configuration again; throw, and keep the old one, when it is bad.
  func shouldReload(_ notification: ShouldReload) async throws
}

/// Hears that the machine is about to sleep.
public protocol SuspendObserver: LifecycleObserver {
  /// The machine is about to sleep.
  func willSuspend(_ notification: WillSuspend) async throws
}

/// Hears that the machine has woken up.
public protocol ResumeObserver: LifecycleObserver {
  /// The machine has slept.
  func didResume(_ notification: DidResume) async throws
}

/// Hears that a resource is short.
public protocol PressureObserver: LifecycleObserver {
  /// Free what can be had again.
  func didReceivePressure(_ notification: DidReceivePressure) async throws
}

/// Hears the watchdog's question whether all is well.
public protocol HealthObserver: LifecycleObserver {
  /// Return when all is well; throw what is wrong. An error, or a hook that does not return in time,
  /// withholds the watchdog's ping, and systemd ends the daemon when none comes within `WatchdogSec=`.
  ///
  /// It is called every three eighths of that time, so one failed check is survived, and two in a row are not.
  ///
  /// It does not wait its turn, but is called beside whatever else is being delivered: on a class it may run while
  /// another hook of the observer does. Cheap checks only.
  func checkHealth(_ notification: CheckHealth) async throws
}

/// Hears that the daemon ends.
public protocol TerminationObserver: LifecycleObserver {
  /// Close what is open.
  func willTerminate(_ notification: WillTerminate) async throws
}

/// Hears every notification, your own types included, after its own hook for it.
public protocol WildcardObserver: LifecycleObserver {
  /// Called for every notification, with whatever type it has.
  func didReceive(_ notification: any LifecycleNotification) async throws
}
