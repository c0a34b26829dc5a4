/// Microseconds of `CLOCK_MONOTONIC`, sd-bus's and timerfd's clock.
struct BusTime: Comparable, Hashable, Sendable {
  var microseconds: UInt64

  static func now() -> BusTime { BusTime(microseconds: monotonicMicroseconds()) }

  static func < (a: BusTime, b: BusTime) -> Bool { a.microseconds < b.microseconds }

  func advanced(_ microseconds: UInt64) -> BusTime {
    let (sum, overflow) = self.microseconds.addingReportingOverflow(microseconds)
    return BusTime(microseconds: overflow ? .max : sum)
  }

  /// 1 µs to a year: 0 would be sd-bus's own default, and more could overflow in it.
  static func microseconds(_ duration: Duration) -> UInt64 {
    let year: Int64 = 365 * 86_400
    let (seconds, attoseconds) = duration.components
    guard seconds < year else { return UInt64(year) * 1_000_000 }
    guard seconds >= 0 else { return 1 }
    return max(1, UInt64(seconds) * 1_000_000 + UInt64(max(0, attoseconds) / 1_000_000_000_000))
  }
}
