public import DaemonLifecycle
public import Foundation

/// A notification of the lifecycle that `bridge` posts to a `NotificationCenter` as well: all of the package's, and
/// yours.
///
///     struct CacheDropped: BridgedNotification {
///       static let name = Notification.Name("CacheDroppedNotification")
///       let count: Int
///     }
///
///     let token = lifecycle.bridge(CacheDropped.self)
///     …
///     await lifecycle.post(CacheDropped(count: 3))
///
/// It is posted under its name, with the typed value as `object`, and as a `NotificationCenter.AsyncMessage`. What is
/// bridged can't be adopted: see ``DirectedNotification``.
public protocol BridgedNotification: DirectedNotification, NotificationCenter.AsyncMessage
where Direction == Outward, Subject == LifecycleCore {
  /// The name under which it is posted; the type's name with `Notification` behind it unless you say otherwise.
  ///
  /// Not the module and type with a dot between them: Foundation posts the typed message under that name, and on
  /// Linux an observer of the other kind would end the process. `bridge` stops such a name as a programmer error.
  static var name: Notification.Name { get }

  /// The notification to post for a value. What it says of `name` and `object` is overwritten; give it a `userInfo` for
  /// observers that don't know the type. Called in the bridge's hook.
  static func makeNotification(_ message: Self) -> Notification

  /// The value that a notification of the bridge's carries; `nil` for any other.
  ///
  ///     NotificationCenter.default.addObserver(forName: .daemonDidReceivePressure, object: nil, queue: nil) {
  ///       guard let pressure = DidReceivePressure.makeMessage($0) else { return }
  ///       …
  ///     }
  static func makeMessage(_ notification: Notification) -> Self?
}

extension BridgedNotification {
  public static var name: Notification.Name { Notification.Name("\(self)Notification") }

  public static func makeNotification(_ message: Self) -> Notification { Notification(name: name) }

  public static func makeMessage(_ notification: Notification) -> Self? {
    notification.object as? Self
  }
}

/// The forms in which a bridge posts.
public struct BridgedForms: OptionSet, Sendable {
  public let rawValue: Int
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// For `addObserver(forName:object:queue:using:)`: a `Notification` with the typed value as `object`.
  public static let named = BridgedForms(rawValue: 1)
  /// For `addObserver(of:for:using:)` and `messages(of:for:)`: the typed value.
  ///
  /// - Warning: With the Foundation of Swift 6.3 on Linux, a typed message ends the process ("Could not cast value")
  ///   when the same centre has an observer for *every* name (`forName: nil`): leave this form out where there is
  ///   one.
  public static let typed = BridgedForms(rawValue: 2)
}
