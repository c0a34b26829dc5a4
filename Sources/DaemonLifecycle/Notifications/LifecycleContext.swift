// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// What a hook can ask about the delivery that it is part of.
///
/// Every notification of the package has one as `context`; in a hook for a notification of your own,
/// `LifecycleContext.current` is it. Safe to use from any thread.
public struct LifecycleContext: Sendable {
  /// A reference, so that a notification is small however many receive it.
  private let call: any RunningHook

  init(_ call: any RunningHook) { self.call = call }

  package init(cause: LifecycleCause, time: LifecycleClock.Instant) {
    call = NoHook(cause, time.time)
  }

  /// A context outside of any delivery, for calling a hook by hand in a test: it never becomes stale.
  public init(cause: LifecycleCause = LifecycleCause(.api)) {
    self.init(cause: cause, time: LifecycleClock.Instant(.now()))
  }

  /// Why this happens.
  public var cause: LifecycleCause { call.cause }

  /// When the delivery of this notification began, on the subject's clock.
  public var time: LifecycleClock.Instant { LifecycleClock.Instant(call.time) }

  /// When the hook will be cancelled, on the subject's clock; the distant future outside of a delivery.
  public var deadline: LifecycleClock.Instant {
    LifecycleClock.Instant(call.deadline ?? call.time)
  }

  /// What is left until the deadline; never negative.
  public var timeRemaining: Duration { max(.zero, call.now.duration(to: deadline.time)) }

  /// False once this hook has ended, or was abandoned: the delivery has gone on without it, and a hook that wakes
  /// late must not act any more.
  public var isCurrent: Bool { call.isCurrent }

  /// Asks for more time, as iOS's background-task assertion does.
  ///
  /// While the daemon terminates without a service manager, the deadline never passes the stop budget. With one, the
  /// stop is extended, unless a second signal came. Does nothing for a hook that was cancelled or abandoned, and
  /// nothing outside of a delivery.
  public func extendDeadline(by extra: Duration) { call.extendDeadline(by: extra) }
}

/// A call of a hook, as the hook sees it.
protocol RunningHook: AnyObject, Sendable {
  var cause: LifecycleCause { get }
  var time: MonotonicTime { get }
  /// `nil` once the call has ended or was abandoned.
  var deadline: MonotonicTime? { get }
  var now: MonotonicTime { get }
  var isCurrent: Bool { get }
  func extendDeadline(by extra: Duration)
}

/// Outside of any hook: in a stream, or made by hand.
private final class NoHook: RunningHook {
  let cause: LifecycleCause
  let time: MonotonicTime
  var deadline: MonotonicTime? { .distantFuture }
  var now: MonotonicTime { time }
  var isCurrent: Bool { true }

  init(_ cause: LifecycleCause, _ time: MonotonicTime) { (self.cause, self.time) = (cause, time) }

  func extendDeadline(by _: Duration) {}
}
