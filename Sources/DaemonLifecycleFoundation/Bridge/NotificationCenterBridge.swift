public import DaemonLifecycle
public import Foundation

extension LifecycleObservable {
  /// The subject of the typed messages that a bridge posts: for `addObserver(of:for:)`, where a process has several
  /// lifecycles.
  public var messageSubject: LifecycleCore { _core }

  /// Posts what the lifecycle delivers to a `NotificationCenter` as well, as long as the token lives.
  ///
  ///     let bridge = lifecycle.bridge()
  ///     …
  ///     center.addObserver(forName: .daemonDidEnterBackground, object: nil, queue: nil) { notification in … }
  ///     let token = center.addObserver(for: DidEnterBackground.self) { message in … }
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
  ///   - forms: By name, typed, or both. See ``BridgedForms/typed`` for what a typed post must not meet.
  public func bridge(
    to center: NotificationCenter = .default, posting forms: BridgedForms = [.named, .typed]
  ) -> ObservationToken {
    let poster = NotificationPoster(center, forms, core: core)
    let up = NotificationsOnTheWayUp(poster)
    let down = NotificationsOnTheWayDown(poster)
    addObserver(up, phase: .afterAllOnTheWayUp)
    addObserver(down, phase: .afterAllOnTheWayDown)
    return ObservationToken { [weak self] in
      self?.removeObserver(up)
      self?.removeObserver(down)
    }
  }

  /// Posts notifications of one type to a `NotificationCenter` as well, as long as the token lives: your own type, or
  /// CheckHealth.
  ///
  ///     let token = lifecycle.bridge(CacheDropped.self)
  ///
  /// As `bridge(to:posting:)`. Each token posts: a type that is bridged twice is posted twice.
  ///
  /// - Precondition: The type's `name` is not the one that Foundation gives to typed messages; see
  ///   ``BridgedNotification/name``.
  public func bridge<N: BridgedNotification>(
    _ type: N.Type, to center: NotificationCenter = .default,
    posting forms: BridgedForms = [.named, .typed]
  ) -> ObservationToken {
    precondition(
      N.name.rawValue != _typeName(N.self, qualified: true),
      "\(N.self).name is the name of its typed messages: choose another one, or observers will be given the wrong kind."
    )
    let bridge = NotificationBridge(NotificationPoster(center, forms, core: core))
    let phase: LifecyclePhase =
      isDelivered(onTheWayDown: type) ? .afterAllOnTheWayDown : .afterAllOnTheWayUp
    observe(type, owner: bridge, phase: phase) { bridge, notification in
      bridge.poster.post(notification)
    }
    return ObservationToken { [weak self] in self?.removeObserver(bridge) }
  }

  private func isDelivered(onTheWayDown type: any LifecycleNotification.Type) -> Bool {
    let down: [any LifecycleNotification.Type] = [
      DidEnterBackground.self, ShouldSaveState.self, WillSuspend.self, WillTerminate.self,
    ]
    return down.contains { $0 == type }
  }
}

extension LifecyclePhase {
  static let afterAllOnTheWayUp = LifecyclePhase(order: .max)
  static let afterAllOnTheWayDown = LifecyclePhase(order: .min)
}

/// One type's bridge, as the report names it.
final class NotificationBridge: Sendable {
  let poster: NotificationPoster
  init(_ poster: NotificationPoster) { self.poster = poster }
}

/// The part of a bridge that is above all phases.
final class NotificationsOnTheWayUp: LaunchObserver, ForegroundObserver, ReloadObserver,
  ResumeObserver, PressureObserver
{
  private let poster: NotificationPoster
  init(_ poster: NotificationPoster) { self.poster = poster }

  func didFinishLaunching(_ notification: DidFinishLaunching) { poster.post(notification) }
  func willEnterForeground(_ notification: WillEnterForeground) { poster.post(notification) }
  func shouldReload(_ notification: ShouldReload) { poster.post(notification) }
  func didResume(_ notification: DidResume) { poster.post(notification) }
  func didReceivePressure(_ notification: DidReceivePressure) { poster.post(notification) }
}

/// The part of a bridge that is below all phases.
final class NotificationsOnTheWayDown: BackgroundObserver, StateObserver, SuspendObserver,
  TerminationObserver
{
  private let poster: NotificationPoster
  init(_ poster: NotificationPoster) { self.poster = poster }

  func didEnterBackground(_ notification: DidEnterBackground) { poster.post(notification) }
  func shouldSaveState(_ notification: ShouldSaveState) { poster.post(notification) }
  func willSuspend(_ notification: WillSuspend) { poster.post(notification) }
  func willTerminate(_ notification: WillTerminate) { poster.post(notification) }
}
