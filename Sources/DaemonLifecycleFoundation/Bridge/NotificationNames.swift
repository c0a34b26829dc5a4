// SPDX-License-Identifier: Apache-2.0
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

// MARK: Types

extension NotificationKind {
  var bridged: (type: any BridgedNotification.Type, name: Notification.Name) {
    switch self {
    case .didFinishLaunching: (DidFinishLaunching.self, .daemonDidFinishLaunching)
    case .willEnterForeground: (WillEnterForeground.self, .daemonWillEnterForeground)
    case .didEnterBackground: (DidEnterBackground.self, .daemonDidEnterBackground)
    case .shouldSaveState: (ShouldSaveState.self, .daemonShouldSaveState)
    case .shouldReload: (ShouldReload.self, .daemonShouldReload)
    case .willSuspend: (WillSuspend.self, .daemonWillSuspend)
    case .didResume: (DidResume.self, .daemonDidResume)
    case .didReceivePressure: (DidReceivePressure.self, .daemonDidReceivePressure)
    case .checkHealth: (CheckHealth.self, .daemonCheckHealth)
    case .willTerminate: (WillTerminate.self, .daemonWillTerminate)
    }
  }
}

extension DidFinishLaunching: BridgedNotification {}
extension WillEnterForeground: BridgedNotification {}
extension DidEnterBackground: BridgedNotification {}
extension ShouldSaveState: BridgedNotification {}
extension ShouldReload: BridgedNotification {}
extension WillSuspend: BridgedNotification {}
extension DidResume: BridgedNotification {}
extension DidReceivePressure: BridgedNotification {}
extension CheckHealth: BridgedNotification {}
extension WillTerminate: BridgedNotification {}
