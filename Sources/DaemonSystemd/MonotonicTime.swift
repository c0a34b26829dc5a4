// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A point in time in nanoseconds of `CLOCK_MONOTONIC`, the clock of timerfd, sd-bus, systemd's timers and every
/// deadline of this package. A virtual clock counts virtual nanoseconds in the same type.
///
/// `@usableFromInline`: without it the compiler inlines none of the members into other modules, `@inlinable` or not.
@usableFromInline @frozen package struct MonotonicTime: Comparable, Hashable, Sendable {
  @usableFromInline package var nanoseconds: Int64

  @inlinable @inline(__always) package static var distantFuture: MonotonicTime {
    MonotonicTime(nanoseconds: .max)
  }

  @inlinable @inline(__always) package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  package static func now() -> MonotonicTime {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return MonotonicTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  /// Returns the time `timeout` from now; in the past if it is negative.
  package static func after(_ timeout: Duration) -> MonotonicTime { now().advanced(by: timeout) }

  @inlinable @inline(__always) package static func < (a: MonotonicTime, b: MonotonicTime) -> Bool {
    a.nanoseconds < b.nanoseconds
  }
  @inlinable @inline(__always) package static func <= (a: MonotonicTime, b: MonotonicTime) -> Bool {
    a.nanoseconds <= b.nanoseconds
  }

  /// Adds a duration. The result saturates: `Duration.seconds(.max)` gives the distant future, not a trap.
  @inlinable @inline(__always) package func advanced(by duration: Duration) -> MonotonicTime {
    advanced(byNanoseconds: duration.saturatedNanoseconds)
  }

  /// Adds nanoseconds; the result saturates. It is for frequent use, since a `Duration` requires a 128-bit division.
  @inlinable @inline(__always) package func advanced(byNanoseconds duration: Int64) -> MonotonicTime
  {
    let (sum, overflow) = nanoseconds.addingReportingOverflow(duration)
    return MonotonicTime(nanoseconds: overflow ? (duration < 0 ? .min : .max) : sum)
  }

  @inlinable @inline(__always) package func duration(to later: MonotonicTime) -> Duration {
    let (difference, overflow) = later.nanoseconds.subtractingReportingOverflow(nanoseconds)
    guard overflow else { return .nanoseconds(difference) }
    return .nanoseconds(later > self ? Int64.max : Int64.min)
  }

  // MARK: Conversions

  /// Makes a time from the span since the machine has booted.
  package init(sinceBoot time: Duration) { self.init(nanoseconds: time.saturatedNanoseconds) }

  /// The time as that span.
  package var sinceBoot: Duration { .nanoseconds(nanoseconds) }

  /// The time in microseconds, as sd-bus counts it.
  package var microseconds: UInt64 { UInt64(max(0, nanoseconds)) / 1000 }

  /// Makes a time from microseconds; the distant future where it does not fit.
  package init(microseconds: UInt64) {
    self.init(
      nanoseconds: microseconds > UInt64(Int64.max) / 1000 ? .max : Int64(microseconds) * 1000)
  }

  // MARK: As a deadline

  /// The time that is left in milliseconds, for poll(2). It is rounded up, so that the caller does not spin through the
  /// last millisecond; 0 once the time has passed.
  package var milliseconds: Int32 {
    let left = max(.zero, MonotonicTime.now().duration(to: self)).saturatedNanoseconds
    return Int32(clamping: left / 1_000_000 + (left % 1_000_000 > 0 ? 1 : 0))
  }
}

extension Duration {
  /// The duration, at least zero and at most 2^32 s (136 years), so that sums of such durations do not overflow.
  package var bounded: Duration { min(max(.zero, self), .seconds(1 << 32)) }

  /// The duration in whole nanoseconds, clamped to the range of 64 bits: about ±292 years.
  @inlinable @inline(__always) package var saturatedNanoseconds: Int64 {
    // First, since `components` traps beyond 64 bits of seconds, as after `.zero - .seconds(.min)`.
    if self >= .nanoseconds(Int64.max) { return .max }
    if self <= .nanoseconds(Int64.min) { return .min }
    let (seconds, attoseconds) = components
    return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }
}
