import DaemonSystemd

/// What a hook can ask about the delivery that it is part of.
///
/// Every notification of the package has one as `context`; in a hook for a notification of your own,
/// `LifecycleContext.current` is it. Safe to use from any thread.
public struct LifecycleContext: Sendable {
  /// A reference, so that a notification is small however many receive it.
  private enum Source: Sendable {
    case hook(any RunningHook)
    case fixed(Fixed)
  }

  /// Outside of any hook: in a stream, or made by hand.
  private final class Fixed: Sendable {
    let cause: LifecycleCause
    let time: MonotonicTime
    init(_ cause: LifecycleCause, _ time: MonotonicTime) { (self.cause, self.time) = (cause, time) }
  }

  private let source: Source

  init(_ call: any RunningHook) { source = .hook(call) }

  package init(cause: LifecycleCause, time: LifecycleClock.Instant) {
    source = .fixed(Fixed(cause, time.time))
  }

  /// A context outside of any delivery, for calling a hook by hand in a test: it never becomes stale.
  public init(cause: LifecycleCause = LifecycleCause(.api)) {
    self.init(cause: cause, time: LifecycleClock.Instant(.now()))
  }

  /// Why this happens.
  public var cause: LifecycleCause {
    switch source {
    case .hook(let call): call.cause
    case .fixed(let fixed): fixed.cause
    }
  }

  /// When the delivery of this notification began, on the subject's clock.
  public var time: LifecycleClock.Instant {
    switch source {
    case .hook(let call): LifecycleClock.Instant(call.time)
    case .fixed(let fixed): LifecycleClock.Instant(fixed.time)
    }
  }

  /// When the hook will be cancelled, on the subject's clock; the distant future outside of a delivery.
  public var deadline: LifecycleClock.Instant {
    guard case .hook(let call) = source else { return .distantFuture }
    return LifecycleClock.Instant(call.deadline ?? call.time)
  }

  /// What is left until the deadline; never negative.
  public var timeRemaining: Duration {
    guard case .hook(let call) = source else { return .seconds(Int64.max) }
    return max(.zero, call.now.duration(to: deadline.time))
  }

  /// False once this hook has ended, or was abandoned: the delivery has gone on without it, and a hook that wakes
  /// late must not act any more.
  public var isCurrent: Bool {
    guard case .hook(let call) = source else { return true }
    return call.isCurrent
  }

  /// Asks for more time, as iOS's background-task assertion does.
  ///
  /// While the daemon terminates without a service manager, the deadline never passes the stop budget. With one, the
  /// stop is extended, unless a second signal came. Does nothing for a hook that was cancelled or abandoned, and
  /// nothing outside of a delivery.
  public func extendDeadline(by extra: Duration) {
    guard case .hook(let call) = source else { return }
    call.extendDeadline(by: extra)
  }
}

/// A call of a hook, as the hook sees it.
protocol RunningHook: AnyObject, Sendable {
  var cause: LifecycleCause { get }
  /// When the delivery began.
  var time: MonotonicTime { get }
  /// `nil` once the call has ended or was abandoned.
  var deadline: MonotonicTime? { get }
  var now: MonotonicTime { get }
  /// Neither ended nor abandoned.
  var isCurrent: Bool { get }
  func extendDeadline(by extra: Duration)
}
