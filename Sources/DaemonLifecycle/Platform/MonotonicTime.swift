import CLinux

/// Nanoseconds of `CLOCK_MONOTONIC`, the clock that timerfd, systemd's timers and every deadline here
/// share. In a virtual clock the same type counts virtual nanoseconds.
struct MonotonicTime: Comparable, Hashable, Sendable {
  var nanoseconds: Int64

  static let distantFuture = MonotonicTime(nanoseconds: .max)

  static func now() -> MonotonicTime {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return MonotonicTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  static func < (a: MonotonicTime, b: MonotonicTime) -> Bool { a.nanoseconds < b.nanoseconds }

  /// Saturates: a deadline of `Duration.seconds(.max)` is the distant future, not a trap.
  func advanced(by duration: Duration) -> MonotonicTime {
    advanced(byNanoseconds: duration.saturatedNanoseconds)
  }

  /// Saturates. For what is reckoned often: a `Duration` takes a division of 128 bits.
  func advanced(byNanoseconds duration: Int64) -> MonotonicTime {
    let (sum, overflow) = nanoseconds.addingReportingOverflow(duration)
    return MonotonicTime(nanoseconds: overflow ? (duration < 0 ? .min : .max) : sum)
  }

  func duration(to later: MonotonicTime) -> Duration {
    let (difference, overflow) = later.nanoseconds.subtractingReportingOverflow(nanoseconds)
    guard overflow else { return .nanoseconds(difference) }
    return .nanoseconds(later > self ? Int64.max : Int64.min)
  }
}

extension Duration {
  /// Whole nanoseconds, clamped to what fits: about 292 years either way.
  var saturatedNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflow2) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
    if overflow || overflow2 { return seconds < 0 ? .min : .max }
    return sum
  }
}
