// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The delivery that a hook is part of: its cause, time and deadline.
///
/// Every notification of the package has one as `context`. A hook for a custom notification finds it in ``current``.
/// Safe to use from any thread.
public struct LifecycleContext: Sendable {
  /// The call, as a reference, so that a notification stays small.
  private let call: any RunningHook

  init(_ call: any RunningHook) { self.call = call }

  package init(cause: LifecycleCause, time: LifecycleClock.Instant) {
    call = NoHook(cause, time.time)
  }

  /// Makes a context outside of any delivery, to call a hook in a test. It always is current.
  public init() {
    self.init(cause: LifecycleCause(.api), time: LifecycleClock.Instant(.now()))
  }

  /// The cause of the delivery.
  public var cause: LifecycleCause { call.cause }

  /// The time at which the hook will be cancelled, on the subject's clock; the distant future outside of a delivery.
  public var deadline: LifecycleClock.Instant {
    LifecycleClock.Instant(call.deadline ?? call.time)
  }

  /// The time that is left until the deadline; never negative.
  public var timeRemaining: Duration { max(.zero, call.now.duration(to: deadline.time)) }

  /// Whether the hook is still part of the delivery: false once it has ended or was abandoned. A hook that wakes up
  /// then must do nothing more.
  public var isCurrent: Bool { call.deadline != nil }

  /// Moves the hook's deadline to a later time.
  ///
  /// While the daemon terminates without a service manager, the deadline can't exceed
  /// ``LifecycleConfiguration/stopTimeout``. With a service manager, the stop is extended (`EXTEND_TIMEOUT_USEC=`),
  /// unless a second signal arrived. It has no effect after the hook was cancelled or abandoned, and outside of a
  /// delivery.
  ///
  /// - Parameter extra: The additional time.
  public func extendDeadline(by extra: Duration) { call.extendDeadline(by: extra) }
}

/// A running call of a hook, from the hook's point of view.
protocol RunningHook: AnyObject, Sendable {
  var cause: LifecycleCause { get }
  var time: MonotonicTime { get }
  /// The deadline; `nil` once the call has ended or was abandoned.
  var deadline: MonotonicTime? { get }
  var now: MonotonicTime { get }
  func extendDeadline(by extra: Duration)
}

/// A stand-in outside of any hook: in a stream, or in a test.
private final class NoHook: RunningHook {
  let cause: LifecycleCause
  let time: MonotonicTime
  var deadline: MonotonicTime? { .distantFuture }
  var now: MonotonicTime { time }

  init(_ cause: LifecycleCause, _ time: MonotonicTime) { (self.cause, self.time) = (cause, time) }

  func extendDeadline(by _: Duration) {}
}
