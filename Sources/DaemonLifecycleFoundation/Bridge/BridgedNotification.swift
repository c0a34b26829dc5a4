// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import Foundation

/// A notification of the lifecycle that `bridge` also posts to a `NotificationCenter`: all notifications of the
/// package, and custom types that conform.
///
/// ```swift
/// struct CacheDropped: BridgedNotification, CustomNotification {
///   static let name = Notification.Name("CacheDroppedNotification")
///   let count: Int
/// }
///
/// let token = lifecycle.bridge(CacheDropped.self)
/// …
/// await lifecycle.post(CacheDropped(count: 3))
/// ```
///
/// It is posted under its name, with the typed value as `object`, and as a `NotificationCenter.AsyncMessage`. A bridged
/// notification can't be adopted: a type that is an ``AdoptedNotification`` too does not compile.
public protocol BridgedNotification: _DirectedNotification, NotificationCenter.AsyncMessage
where _Direction == _Outward, Subject == LifecycleCore {
  /// The name under which it is posted. Default: the type's name followed by `Notification`.
  ///
  /// The name must not be the module and the type with a dot between them: Foundation posts the typed message under
  /// that name, and on Linux an observer of the other kind would end the process. `bridge` treats such a name as a
  /// programmer error.
  static var name: Notification.Name { get }

  /// Makes the notification to post for a value. Its `name` and `object` are overwritten; add a `userInfo` for
  /// observers that don't know the type. It is called in the bridge's hook.
  static func makeNotification(_ message: Self) -> Notification
}

extension BridgedNotification {
  /// The default name: that of the package's notification, or the type's name followed by `Notification`.
  public static var name: Notification.Name {
    NotificationKind(self)?.bridged.name ?? Notification.Name("\(self)Notification")
  }

  /// Makes a notification without a `userInfo`: the default.
  public static func makeNotification(_ message: Self) -> Notification { Notification(name: name) }

  /// Returns the value in a notification that a bridge has posted; `nil` for any other.
  ///
  /// ```swift
  /// NotificationCenter.default.addObserver(forName: .daemonDidReceivePressure, object: nil, queue: nil) {
  ///   guard let pressure = DidReceivePressure.makeMessage($0) else { return }
  ///   …
  /// }
  /// ```
  public static func makeMessage(_ notification: Notification) -> Self? {
    notification.object as? Self
  }
}
