// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import Foundation

extension LifecycleObservable {
  /// Posts the lifecycle's notifications to a `NotificationCenter`, until the returned token is released or cancelled.
  ///
  /// ```swift
  /// let bridge = lifecycle.bridge()
  /// ```
  ///
  /// Each is posted under `Notification.Name.daemon(_:)` of its type, with the value as `object`. The bridge consists of two
  /// observers, which are notified last: one above all phases on the way up, one below all phases on the way down. So it posts
  /// after all other hooks have run. The report has the time of the centre's observers, as that of `NotificationsOnTheWayUp`
  /// and `NotificationsOnTheWayDown`. A bridge that is added late posts the notifications of late observers.
  ///
  /// The centre's observers run in the hook, one after another, on a thread of the subject: never on Swift's cooperative
  /// pool, and within the hook's deadline. If one blocks longer, the hook is abandoned, as any hook is, and the lifecycle
  /// goes on; while it is blocked, that part of the bridge posts nothing except ShouldSaveState, once. Pass `nil` as
  /// their queue: Foundation blocks the hook until all operations in the queue are done, and the main queue may be
  /// waiting for the hook. `LifecycleContext.current` is the hook's context.
  ///
  /// CheckHealth is not posted, since a slow observer would prevent the watchdog's ping, nor are custom notifications:
  /// post these in a hook. Two bridges to the same centre post twice.
  ///
  /// - Parameter center: The centre to post to. Default: the default centre.
  /// - Returns: A token that ends the bridge when it is cancelled or released.
  public func bridge(to center: NotificationCenter = .default) -> LifecycleToken {
    let bridge = NotificationCenterBridge()
    func hook<N: LifecycleNotification>(_ type: N.Type) -> Hook {
      .closure(for: type, owner: NotificationCenterBridge.self) { _, notification in
        // By this object, adoptions recognize what a bridge has posted.
        center.post(name: .daemon(type), object: notification)
      }
    }
    func add(_ name: String, for direction: NotificationKind.Direction, order: Int) {
      let kinds = NotificationKind.allCases.filter {
        $0.row.direction == direction && $0 != .checkHealth
      }
      core.add(
        closures: kinds.map { hook($0.row.type) }, owner: bridge, name: name,
        phase: LifecyclePhase(order: order))
    }
    add("NotificationsOnTheWayUp", for: .up, order: .max)
    add("NotificationsOnTheWayDown", for: .down, order: .min)
    return LifecycleToken { [weak self] in self?.removeObserver(bridge) }
  }
}

/// The identity of the two observers.
private final class NotificationCenterBridge: Sendable {}
