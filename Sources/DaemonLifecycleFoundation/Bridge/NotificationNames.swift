public import DaemonLifecycle
public import Foundation

// What the package's notifications are called in a `NotificationCenter`.

// MARK: Names

extension Notification.Name {
  /// A bridge's post of `DidFinishLaunching`, which is the notification's `object`.
  public static let daemonDidFinishLaunching = Notification.Name(
    "DaemonDidFinishLaunchingNotification")

  /// A bridge's post of `WillEnterForeground`, which is the notification's `object`.
  public static let daemonWillEnterForeground = Notification.Name(
    "DaemonWillEnterForegroundNotification")

  /// A bridge's post of `DidEnterBackground`, which is the notification's `object`.
  public static let daemonDidEnterBackground = Notification.Name(
    "DaemonDidEnterBackgroundNotification")

  /// A bridge's post of `ShouldSaveState`, which is the notification's `object`.
  public static let daemonShouldSaveState = Notification.Name("DaemonShouldSaveStateNotification")

  /// A bridge's post of `ShouldReload`, which is the notification's `object`.
  public static let daemonShouldReload = Notification.Name("DaemonShouldReloadNotification")

  /// A bridge's post of `WillSuspend`, which is the notification's `object`.
  public static let daemonWillSuspend = Notification.Name("DaemonWillSuspendNotification")

  /// A bridge's post of `DidResume`, which is the notification's `object`.
  public static let daemonDidResume = Notification.Name("DaemonDidResumeNotification")

  /// A bridge's post of `DidReceivePressure`, which is the notification's `object`.
  public static let daemonDidReceivePressure = Notification.Name(
    "DaemonDidReceivePressureNotification")

  /// A bridge's post of `CheckHealth`, which is the notification's `object`.
  ///
  /// Only by `bridge(CheckHealth.self)`: see there.
  public static let daemonCheckHealth = Notification.Name("DaemonCheckHealthNotification")

  /// A bridge's post of `WillTerminate`, which is the notification's `object`.
  public static let daemonWillTerminate = Notification.Name("DaemonWillTerminateNotification")
}

// MARK: Conformances

extension DidFinishLaunching: BridgedNotification {
  public static var name: Notification.Name { .daemonDidFinishLaunching }
}

extension WillEnterForeground: BridgedNotification {
  public static var name: Notification.Name { .daemonWillEnterForeground }
}

extension DidEnterBackground: BridgedNotification {
  public static var name: Notification.Name { .daemonDidEnterBackground }
}

extension ShouldSaveState: BridgedNotification {
  public static var name: Notification.Name { .daemonShouldSaveState }
}

extension ShouldReload: BridgedNotification {
  public static var name: Notification.Name { .daemonShouldReload }
}

extension WillSuspend: BridgedNotification {
  public static var name: Notification.Name { .daemonWillSuspend }
}

extension DidResume: BridgedNotification {
  public static var name: Notification.Name { .daemonDidResume }
}

extension DidReceivePressure: BridgedNotification {
  public static var name: Notification.Name { .daemonDidReceivePressure }
}

extension CheckHealth: BridgedNotification {
  public static var name: Notification.Name { .daemonCheckHealth }
}

extension WillTerminate: BridgedNotification {
  public static var name: Notification.Name { .daemonWillTerminate }
}

// MARK: Identifiers

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<DidFinishLaunching> {
  /// For `addObserver(of: LifecycleCore.self, for: .daemonDidFinishLaunching)`.
  public static var daemonDidFinishLaunching: Self { .init() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<WillEnterForeground> {
  /// For `addObserver(of: LifecycleCore.self, for: .daemonWillEnterForeground)`.
  public static var daemonWillEnterForeground: Self { .init() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<DidEnterBackground> {
  /// For `addObserver(of: LifecycleCore.self, for: .daemonDidEnterBackground)`.
  public static var daemonDidEnterBackground: Self { .init() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<ShouldSaveState> {
  /// For `addObserver(of: LifecycleCore.self, for: .daemonShouldSaveState)`.
  public static var daemonShouldSaveState: Self { .init() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<ShouldReload> {
  /// For `addObserver(of: LifecycleCore.self, for: .daemonShouldReload)`.
  public static var daemonShouldReload: Self { .init() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<WillSuspend> {
  /// For `addObserver(of: LifecycleCore.self, for: .daemonWillSuspend)`.
  public static var daemonWillSuspend: Self { .init() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<DidResume> {
  /// For `addObserver(of: LifecycleCore.self, for: .daemonDidResume)`.
  public static var daemonDidResume: Self { .init() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<DidReceivePressure> {
  /// For `addObserver(of: LifecycleCore.self, for: .daemonDidReceivePressure)`.
  public static var daemonDidReceivePressure: Self { .init() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<CheckHealth> {
  /// For `addObserver(of: LifecycleCore.self, for: .daemonCheckHealth)`.
  public static var daemonCheckHealth: Self { .init() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<WillTerminate> {
  /// For `addObserver(of: LifecycleCore.self, for: .daemonWillTerminate)`.
  public static var daemonWillTerminate: Self { .init() }
}
