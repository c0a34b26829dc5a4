// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import Foundation

extension LifecycleObservable {
  /// The subject of the typed messages that a bridge posts: for `addObserver(of:for:)`, where a process has several
  /// lifecycles.
  public var messageSubject: LifecycleCore { _core }

  /// Posts what the lifecycle delivers to a `NotificationCenter` as well, as long as the token lives.
  ///
  /// ```swift
  /// let bridge = lifecycle.bridge()
  /// …
  /// center.addObserver(forName: .daemonDidEnterBackground, object: nil, queue: nil) { notification in … }
  /// let token = center.addObserver(for: DidEnterBackground.self) { message in … }
  /// ```
  ///
  /// The bridge is an observer like any other, in two parts, and hears last: above all phases on the way up, below
  /// all on the way down. So nothing is posted before your own hooks have run, and what observers in the centre do is
  /// in the report, as `NotificationsOnTheWayUp` and `NotificationsOnTheWayDown`. Added late, it posts what late
  /// observers hear.
  ///
  /// Observers by name run in the hook, one after another, on a thread of the subject's own: never on Swift's
  /// cooperative pool, and within the hook's deadline. One that blocks longer is given up like any hook, and the
  /// lifecycle goes on; while it is stuck, that part of the bridge posts nothing but, once, ShouldSaveState. Ask for
  /// no queue: Foundation blocks the hook until everything in the queue is done, and the main queue may wait for you.
  /// `LifecycleContext.current` is the hook's context.
  ///
  /// What holds for a hook holds for the bridge: at the launch, one that is given up ends the daemon, unless
  /// `terminatesWhenLaunchFails` is false, and at the end it shows in the exit's code.
  ///
  /// Typed observers run later, on the cooperative pool, in no order; nobody waits for them. They are no place to save.
  ///
  /// CheckHealth is not posted: it is a question, and a slow answer from anywhere would withhold the watchdog's ping.
  /// If that is what you want, say `bridge(CheckHealth.self)`. Each token posts: two bridges to one centre post
  /// twice.
  ///
  /// - Parameters:
  ///   - center: Where to post; may be called from any thread.
  ///   - typed: Whether to post the typed value too, for `addObserver(of:for:using:)` and `messages(of:for:)`, and not
  ///     only a `Notification` with it as `object`, for `addObserver(forName:object:queue:using:)`.
  /// - Warning: With the Foundation of Swift 6.3 on Linux, a typed message ends the process ("Could not cast value")
  ///   when the same centre has an observer for *every* name (`forName: nil`): say `typed: false` where there is one.
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
    // The health check is a question.
    let kinds = NotificationKind.allCases.filter {
      $0.row.direction == direction && $0 != .checkHealth
    }
    core.add(closures: kinds.map { hook($0.bridged.type) }, owner: part, phase: phase)
  }

  /// Posts notifications of one type to a `NotificationCenter` as well, as long as the token lives: your own type, or
  /// CheckHealth.
  ///
  /// ```swift
  /// let token = lifecycle.bridge(CacheDropped.self)
  /// ```
  ///
  /// As `bridge(to:typed:)`. Each token posts: a type that is bridged twice is posted twice.
  ///
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

/// What reports call a bridge, or a part of one.
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
