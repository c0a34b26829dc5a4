// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import Foundation

/// A notification of the lifecycle that `bridge` posts to a `NotificationCenter` as well: all of the package's, and
/// yours.
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
/// It is posted under its name, with the typed value as `object`, and as a `NotificationCenter.AsyncMessage`. What is
/// bridged can't be adopted: the compiler refuses a type that is an ``AdoptedNotification`` too.
public protocol BridgedNotification: _DirectedNotification, NotificationCenter.AsyncMessage
where _Direction == _Outward, Subject == LifecycleCore {
  /// The name under which it is posted; the type's name with `Notification` behind it unless you say otherwise.
  ///
  /// Not the module and type with a dot between them: Foundation posts the typed message under that name, and on
  /// Linux an observer of the other kind would end the process. `bridge` stops such a name as a programmer error.
  static var name: Notification.Name { get }

  /// The notification to post for a value. What it says of `name` and `object` is overwritten; give it a `userInfo` for
  /// observers that don't know the type. Called in the bridge's hook.
  static func makeNotification(_ message: Self) -> Notification
}

extension BridgedNotification {
  public static var name: Notification.Name {
    NotificationKind(self)?.bridged.name ?? Notification.Name("\(self)Notification")
  }

  public static func makeNotification(_ message: Self) -> Notification { Notification(name: name) }

  /// The value that a notification of the bridge's carries; `nil` for any other.
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
