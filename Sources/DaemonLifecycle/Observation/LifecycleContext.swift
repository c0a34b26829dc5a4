/// What a hook can ask about the delivery that it is part of.
///
/// Every notification of the package has one as `context`; in a hook for a notification of your own,
/// `LifecycleContext.current` is it. Safe to use from any thread.
public struct LifecycleContext: Sendable {
  /// Why this happens.
  public let cause: LifecycleCause
  /// When the delivery of this notification began, on the subject's clock.
  public let time: LifecycleClock.Instant
  /// The hook being called; nil in a stream and in a context made by hand.
  let call: HookCall?

  init(cause: LifecycleCause, time: LifecycleClock.Instant, call: HookCall?) {
    self.cause = cause
    self.time = time
    self.call = call
  }

  /// A context outside of any delivery, for calling a hook by hand in a test: it never becomes stale.
  public init(cause: LifecycleCause = LifecycleCause(.api)) {
    self.init(cause: cause, time: LifecycleClock.Instant(.now()), call: nil)
  }

  /// The context of the hook that the current task runs in, if it does.
  public static var current: LifecycleContext? {
    guard let call = HookCall.current, call.isCurrent else { return nil }
    return call.context
  }

  /// When the hook will be cancelled, on the subject's clock; the distant future outside of a delivery.
  public var deadline: LifecycleClock.Instant { call?.deadline ?? .distantFuture }

  /// What is left until the deadline; never negative.
  public var timeRemaining: Duration {
    guard let call else { return .seconds(Int64.max) }
    return max(.zero, call.clock.now.duration(to: call.deadline))
  }

  /// False once this hook was given up: the delivery has gone on without it, and a hook that wakes late
  /// must not act any more.
  public var isCurrent: Bool { call?.isCurrent ?? true }

  /// Asks for more time, as iOS's background-task assertion does.
  ///
  /// While the daemon terminates, the deadline never passes what is left of the stop budget. Does nothing
  /// for a hook that was given up, and nothing outside of a delivery.
  public func extendDeadline(by extra: Duration) { call?.extendDeadline(by: extra) }
}
