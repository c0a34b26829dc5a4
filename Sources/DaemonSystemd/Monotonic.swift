import CLinux

/// Microseconds of `CLOCK_MONOTONIC`, the clock of systemd's timers.
package func monotonicMicroseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1000
}

/// A point in time by which something must have happened.
package struct Deadline {
  /// Microseconds of `CLOCK_MONOTONIC`; `.max` is never.
  package let time: UInt64

  package init(after timeout: Duration) {
    let (seconds, attoseconds) = timeout.components
    guard seconds >= 0, attoseconds >= 0 else {
      time = 0
      return
    }
    let (scaled, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000)
    let rounded = UInt64((attoseconds + 999_999_999_999) / 1_000_000_000_000)
    let (sum, overflow2) = scaled.addingReportingOverflow(rounded)
    let (end, overflow3) = sum.addingReportingOverflow(monotonicMicroseconds())
    time = overflow || overflow2 || overflow3 ? .max : end
  }

  /// For poll(2): rounded up, so that it does not spin through the last millisecond; 0 once it has passed.
  package var milliseconds: Int32 {
    let now = monotonicMicroseconds()
    return now >= time ? 0 : Int32(clamping: (time - now + 999) / 1000)
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
