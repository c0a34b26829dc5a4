// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A point in time: nanoseconds of `CLOCK_MONOTONIC`, the clock that timerfd, sd-bus, systemd's timers and every
/// deadline here share. In a virtual clock the same type counts virtual nanoseconds.
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

  /// The point in time after `timeout`; one that is negative has passed.
  package static func after(_ timeout: Duration) -> MonotonicTime { now().advanced(by: timeout) }

  @inlinable @inline(__always) package static func < (a: MonotonicTime, b: MonotonicTime) -> Bool {
    a.nanoseconds < b.nanoseconds
  }
  @inlinable @inline(__always) package static func <= (a: MonotonicTime, b: MonotonicTime) -> Bool {
    a.nanoseconds <= b.nanoseconds
  }

  /// Saturates: a deadline of `Duration.seconds(.max)` is the distant future, not a trap.
  @inlinable @inline(__always) package func advanced(by duration: Duration) -> MonotonicTime {
    advanced(byNanoseconds: duration.saturatedNanoseconds)
  }

  /// Saturates. For what is reckoned often: a `Duration` takes a division of 128 bits.
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

  // MARK: As systems count

  /// As sd-bus and `MONOTONIC_USEC=` have it.
  package var microseconds: UInt64 { UInt64(max(0, nanoseconds)) / 1000 }

  /// The time at this count of microseconds; the distant future where it does not fit.
  package init(microseconds: UInt64) {
    self.init(
      nanoseconds: microseconds > UInt64(Int64.max) / 1000 ? .max : Int64(microseconds) * 1000)
  }

  // MARK: As a deadline

  /// What is left of it for poll(2): rounded up, so that it does not spin through the last millisecond; 0 once it has
  /// passed.
  package var milliseconds: Int32 {
    let left = max(.zero, MonotonicTime.now().duration(to: self)).saturatedNanoseconds
    return Int32(clamping: left / 1_000_000 + (left % 1_000_000 > 0 ? 1 : 0))
  }

  /// Waits until one of `events` (or an error or a hang-up) is there: what is, or 0 when the time is over.
  package func wait(for descriptor: Int32, events: Int32, purpose: String) throws(SystemdError)
    -> Int32
  {
    while true {
      var entry = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0)
      let remaining = milliseconds
      let count = poll(&entry, 1, remaining)
      if count > 0 { return Int32(entry.revents) }
      if count == 0 {
        if remaining == 0 || milliseconds == 0 { return 0 }
      } else if clinux_errno() != EINTR {
        throw .system(purpose, errno: clinux_errno())
      }
    }
  }
}

extension Duration {
  /// Whole nanoseconds, clamped to what fits: about 292 years either way.
  @inlinable @inline(__always) package var saturatedNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflow2) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
    if overflow || overflow2 { return seconds < 0 ? .min : .max }
    return sum
  }
}
