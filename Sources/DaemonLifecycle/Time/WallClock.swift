// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The time of day, for people.
package enum WallClock {
  /// Returns the time in the machine's time zone, as `systemctl status` shows it: `2026-11-21 11:12:03`.
  package static func now() -> String {
    // localtime_r(3) alone would keep the zone of the start, whatever becomes of /etc/localtime.
    tzset()
    var seconds = time(nil)
    var parts = tm()
    guard localtime_r(&seconds, &parts) != nil else { return "an unknown time" }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 32) { buffer in
      // The buffer is big enough for years of up to 16 digits; it belongs to this call alone.
      guard let base = buffer.baseAddress,
        strftime(base, buffer.count, "%Y-%m-%d %H:%M:%S", &parts) > 0
      else { return "an unknown time" }
      return String(cString: base)
    }
  }
}
