// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import Foundation

// The names of the package's notifications in a `NotificationCenter`.

// MARK: Names

extension Notification.Name {
  /// The name of `DidFinishLaunching`, which a bridge posts with the typed value as `object`.
  public static let daemonDidFinishLaunching = Notification.Name(
    "DaemonDidFinishLaunchingNotification")

  /// The name of `WillEnterForeground`, which a bridge posts with the typed value as `object`.
  public static let daemonWillEnterForeground = Notification.Name(
    "DaemonWillEnterForegroundNotification")

  /// The name of `DidEnterBackground`, which a bridge posts with the typed value as `object`.
  public static let daemonDidEnterBackground = Notification.Name(
    "DaemonDidEnterBackgroundNotification")

  /// The name of `ShouldSaveState`, which a bridge posts with the typed value as `object`.
  public static let daemonShouldSaveState = Notification.Name("DaemonShouldSaveStateNotification")

  /// The name of `ShouldReload`, which a bridge posts with the typed value as `object`.
  public static let daemonShouldReload = Notification.Name("DaemonShouldReloadNotification")

  /// The name of `WillSuspend`, which a bridge posts with the typed value as `object`.
  public static let daemonWillSuspend = Notification.Name("DaemonWillSuspendNotification")

  /// The name of `DidResume`, which a bridge posts with the typed value as `object`.
  public static let daemonDidResume = Notification.Name("DaemonDidResumeNotification")

  /// The name of `DidReceivePressure`, which a bridge posts with the typed value as `object`.
  public static let daemonDidReceivePressure = Notification.Name(
    "DaemonDidReceivePressureNotification")

  /// The name of `CheckHealth`, which a bridge posts with the typed value as `object`.
  ///
  /// Only `bridge(CheckHealth.self)` posts it.
  public static let daemonCheckHealth = Notification.Name("DaemonCheckHealthNotification")

  /// The name of `WillTerminate`, which a bridge posts with the typed value as `object`.
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
