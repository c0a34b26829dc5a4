// SPDX-License-Identifier: Apache-2.0
/// A component that receives notifications: the root of the hook protocols, without a requirement of its own.
///
/// A component adopts one protocol for each hook that it implements:
///
/// ```swift
/// actor Poller: BackgroundObserver, SaveObserver {
///   func didEnterBackground(_ notification: DidEnterBackground) { … }
///   func shouldSaveState(_ notification: ShouldSaveState) async throws { … }
/// }
/// ```
///
/// A hook is found wherever its protocol is adopted: by the type, in an extension, by a subclass, or in another module.
///
/// No hook has a default implementation, so a misspelt one does not compile. Classes, actors and `@MainActor` classes
/// can conform; a hook may be synchronous, non-throwing or isolated. A class's hook runs on a thread of the subject, an
/// actor's on the actor. Observers are retained until they are removed, unless they were added with
/// ``LifecycleObservable/addObserver(weakly:name:phase:timeout:)``.
public protocol LifecycleObserver: AnyObject, Sendable {}

/// Receives DidFinishLaunching when the daemon was launched.
public protocol LaunchObserver: LifecycleObserver {
  /// Opens files and connections, and restores state.
  ///
  /// An error ends the daemon: a hook that may fail catches its errors. After an error the observer receives no
  /// ShouldSaveState, which would overwrite the state that it failed to restore. If the observer was added after the
  /// launch, the error is logged, and the observer receives nothing more.
  func didFinishLaunching(_ notification: DidFinishLaunching) async throws
}

/// Receives WillEnterForeground when the daemon enters the foreground.
public protocol ForegroundObserver: LifecycleObserver {
  /// Begins or resumes the work.
  func willEnterForeground(_ notification: WillEnterForeground) async throws
}

/// Receives DidEnterBackground when the daemon enters the background.
public protocol BackgroundObserver: LifecycleObserver {
  /// Pauses the work. When the hook returns, the component should do nothing until the daemon enters the foreground
  /// again.
  func didEnterBackground(_ notification: DidEnterBackground) async throws
}

/// Receives ShouldSaveState when state is to be saved.
public protocol SaveObserver: LifecycleObserver {
  /// Saves all that must outlive the process.
  ///
  /// It is called when the daemon enters the background, before a reload and before the end. A second terminating
  /// signal does not cancel it.
  func shouldSaveState(_ notification: ShouldSaveState) async throws
}

/// Receives ShouldReload when the configuration is to be read again.
public protocol ReloadObserver: LifecycleObserver {
  /// Reads the configuration again. If the new one is invalid, throw an error and keep the old one.
  func shouldReload(_ notification: ShouldReload) async throws
}

/// Receives WillSleep before the machine sleeps.
public protocol SleepObserver: LifecycleObserver {
  /// Prepares for the machine's sleep. The daemon is in the background and has saved its state.
  func willSleep(_ notification: WillSleep) async throws
}

/// Receives DidWakeUp after the machine has slept.
public protocol WakeUpObserver: LifecycleObserver {
  /// Adapts to the time that has passed: clocks have jumped, connections may be stale.
  func didWakeUp(_ notification: DidWakeUp) async throws
}

/// Receives DidReceivePressure when memory is short.
public protocol PressureObserver: LifecycleObserver {
  /// Frees memory that can be filled again, such as caches.
  func didReceivePressure(_ notification: DidReceivePressure) async throws
}

/// Receives CheckHealth for each check of the watchdog.
public protocol HealthObserver: LifecycleObserver {
  /// Returns when the component is healthy, and throws an error otherwise.
  ///
  /// After an error, or when the hook does not return in time, no watchdog ping is sent. systemd ends the daemon when
  /// it receives none within `WatchdogSec=`.
  ///
  /// The hook is called every three quarters of that time, and after a failure once more, three eighths later. So one
  /// failed check has no consequence, but two in a row do.
  ///
  /// It does not wait for other deliveries: a class's hook may run at the same time as another hook of the observer.
  /// Keep the checks cheap.
  func checkHealth(_ notification: CheckHealth) async throws
}

/// Receives WillTerminate before the daemon ends.
public protocol TerminationObserver: LifecycleObserver {
  /// Closes files and connections. State has been saved already.
  func willTerminate(_ notification: WillTerminate) async throws
}
