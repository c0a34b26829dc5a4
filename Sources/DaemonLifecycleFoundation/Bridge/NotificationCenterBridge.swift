// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import Foundation

extension LifecycleObservable {
  /// The subject of the typed messages that a bridge posts, for `addObserver(of:for:)` in a process with several
  /// lifecycles.
  public var messageSubject: LifecycleCore { _core }

  /// Posts the lifecycle's notifications to a `NotificationCenter`, until the returned token is released or cancelled.
  ///
  /// ```swift
  /// let bridge = lifecycle.bridge()
  /// …
  /// center.addObserver(forName: .daemonDidEnterBackground, object: nil, queue: nil) { notification in … }
  /// let token = center.addObserver(for: DidEnterBackground.self) { message in … }
  /// ```
  ///
  /// The bridge consists of two observers, which are notified last: one above all phases on the way up, one below all
  /// phases on the way down. So it posts after all other hooks have run, and the time of the centre's observers is in
  /// the report, as that of `NotificationsOnTheWayUp` and `NotificationsOnTheWayDown`. Added late, it posts what late
  /// observers receive.
  ///
  /// Observers by name run in the hook, one after another, on a thread of the subject: never on Swift's cooperative
  /// pool, and within the hook's deadline. If one blocks longer, the hook is abandoned and the lifecycle goes on; while
  /// it is blocked, that part of the bridge posts nothing except ShouldSaveState, once. Pass `nil` as the queue:
  /// Foundation blocks the hook until all operations in the queue are done, and the main queue may be waiting for the
  /// hook. `LifecycleContext.current` is the hook's context.
  ///
  /// The bridge is treated as any hook: one that is abandoned in the launch ends the daemon, unless
  /// `terminatesWhenLaunchFails` is false, and one that is abandoned in the termination affects the exit's code.
  ///
  /// Typed observers run later, on the cooperative pool, in no particular order, and the delivery does not wait for
  /// them. Do not save in them.
  ///
  /// CheckHealth is not posted, since a slow observer would prevent the watchdog's ping; `bridge(CheckHealth.self)`
  /// posts it. Two bridges to the same centre post twice.
  ///
  /// - Parameters:
  ///   - center: The centre to post to. Default: the default centre.
  ///   - typed: Whether to post the typed value too, for `addObserver(of:for:using:)` and `messages(of:for:)`, and not
  ///     only a `Notification` with it as `object`, for `addObserver(forName:object:queue:using:)`. Default true.
  /// - Returns: A token that ends the bridge when it is cancelled or released.
  /// - Warning: With the Foundation of Swift 6.3 on Linux, a typed message ends the process ("Could not cast value")
  ///   when the same centre has an observer for *every* name (`forName: nil`): pass `typed: false` where there is one.
  public func bridge(
    to center: NotificationCenter = .default, typed: Bool = true
  ) -> ObservationToken {
    let poster = NotificationPoster(center, typed: typed, core: core)
    let (up, down) = (NotificationsOnTheWayUp(poster), NotificationsOnTheWayDown(poster))
    add(up, phase: .afterAllOnTheWayUp, for: .up)
    add(down, phase: .afterAllOnTheWayDown, for: .down)
    return ObservationToken { [weak self] in
      self?.removeObserver(up)
      self?.removeObserver(down)
    }
  }

  private func add<Part: BridgePart>(
    _ part: Part, phase: LifecyclePhase, for direction: NotificationKind.Direction
  ) {
    func hook<N: BridgedNotification>(_ type: N.Type) -> Hook {
      .closure(for: type, owner: Part.self) { part, notification in part.poster.post(notification) }
    }
    // CheckHealth is not posted: see above.
    let kinds = NotificationKind.allCases.filter {
      $0.row.direction == direction && $0 != .checkHealth
    }
    core.add(closures: kinds.map { hook($0.bridged.type) }, owner: part, phase: phase)
  }

  /// Posts notifications of one type to a `NotificationCenter`, until the returned token is released or cancelled: a
  /// custom type, or CheckHealth.
  ///
  /// ```swift
  /// let token = lifecycle.bridge(CacheDropped.self)
  /// ```
  ///
  /// Otherwise it works as `bridge(to:typed:)`. A type that is bridged twice is posted twice.
  ///
  /// - Parameters:
  ///   - type: The type of notification to post.
  ///   - center: The centre to post to. Default: the default centre.
  ///   - typed: Whether to post the typed value too. Default true.
  /// - Returns: A token that ends the bridge when it is cancelled or released.
  /// - Precondition: The type's `name` is not the one that Foundation gives to typed messages; see
  ///   ``BridgedNotification/name``.
  public func bridge<N: BridgedNotification>(
    _ type: N.Type, to center: NotificationCenter = .default,
    typed: Bool = true
  ) -> ObservationToken {
    precondition(
      N.name.rawValue != _typeName(N.self, qualified: true),
      "\(N.self).name is the name of its typed messages: choose another one, or observers will be given the wrong kind."
    )
    let bridge = NotificationBridge(NotificationPoster(center, typed: typed, core: core))
    let phase: LifecyclePhase =
      NotificationKind(type)?.row.direction == .down ? .afterAllOnTheWayDown : .afterAllOnTheWayUp
    observe(type, owner: bridge, phase: phase) { bridge, notification in
      bridge.poster.post(notification)
    }
    return ObservationToken { [weak self] in self?.removeObserver(bridge) }
  }
}

extension LifecyclePhase {
  static let afterAllOnTheWayUp = LifecyclePhase(order: .max)
  static let afterAllOnTheWayDown = LifecyclePhase(order: .min)
}

/// A part of a bridge, under the name that reports have for it.
private protocol BridgePart: AnyObject, Sendable {
  var poster: NotificationPoster { get }
}

final class NotificationBridge: BridgePart {
  let poster: NotificationPoster
  init(_ poster: NotificationPoster) { self.poster = poster }
}

/// The part of a bridge that is above all phases.
final class NotificationsOnTheWayUp: BridgePart {
  let poster: NotificationPoster
  init(_ poster: NotificationPoster) { self.poster = poster }
}

/// The part of a bridge that is below all phases.
final class NotificationsOnTheWayDown: BridgePart {
  let poster: NotificationPoster
  init(_ poster: NotificationPoster) { self.poster = poster }
}
