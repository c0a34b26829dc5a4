// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
import Synchronization

// Observers as a module of their own may have them; tests of another module make them adopt more.

/// What an observer has received, in order.
public final class ReceivedHooks: Sendable {
  private let names = Mutex<[String]>([])
  public init() {}
  public var all: [String] { names.withLock { $0 } }
  public func add(_ notification: some LifecycleNotification) {
    names.withLock { $0.append("\(type(of: notification))") }
  }
}

/// An observer that notes what it receives.
public protocol NotingObserver: LifecycleObserver { var received: ReceivedHooks { get } }

/// Unchecked: subclasses have no state either.
open class ForeignClass: NotingObserver, LaunchObserver, @unchecked Sendable {
  public let received = ReceivedHooks()
  public init() {}
  public func didFinishLaunching(_ notification: DidFinishLaunching) { received.add(notification) }
}

public actor ForeignActor: NotingObserver, LaunchObserver {
  public let received = ReceivedHooks()
  public init() {}
  public func didFinishLaunching(_ notification: DidFinishLaunching) { received.add(notification) }
}

public final class ForeignBox<Element: Sendable>: NotingObserver, LaunchObserver {
  public let received = ReceivedHooks()
  public init() {}
  public func didFinishLaunching(_ notification: DidFinishLaunching) { received.add(notification) }
}

/// An observer with all hooks, each of which does the same.
public protocol EveryHookObserver: LaunchObserver, ForegroundObserver, BackgroundObserver,
  SaveObserver, ReloadObserver, SleepObserver, WakeUpObserver, PressureObserver, HealthObserver,
  TerminationObserver
{
  func receive(_ notification: some LifecycleNotification) async throws
}

extension EveryHookObserver {
  public func didFinishLaunching(_ notification: DidFinishLaunching) async throws {
    try await receive(notification)
  }
  public func willEnterForeground(_ notification: WillEnterForeground) async throws {
    try await receive(notification)
  }
  public func didEnterBackground(_ notification: DidEnterBackground) async throws {
    try await receive(notification)
  }
  public func shouldSaveState(_ notification: ShouldSaveState) async throws {
    try await receive(notification)
  }
  public func shouldReload(_ notification: ShouldReload) async throws {
    try await receive(notification)
  }
  public func willSleep(_ notification: WillSleep) async throws {
    try await receive(notification)
  }
  public func didWakeUp(_ notification: DidWakeUp) async throws { try await receive(notification) }
  public func didReceivePressure(_ notification: DidReceivePressure) async throws {
    try await receive(notification)
  }
  public func checkHealth(_ notification: CheckHealth) async throws {
    try await receive(notification)
  }
  public func willTerminate(_ notification: WillTerminate) async throws {
    try await receive(notification)
  }
}

/// An observer without a hook.
public final class ForeignObserver: NotingObserver {
  public let received = ReceivedHooks()
  public init() {}
}

/// No observer.
public final class ForeignStranger: Sendable {
  public let received = ReceivedHooks()
  public init() {}
}
