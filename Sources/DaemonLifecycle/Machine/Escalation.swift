// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The rule for which terminating signals count. One stop often arrives as several signals: a wrapper relays it, the
/// terminal sends it to all processes, a supervisor sends it twice.
struct Escalation: Sendable {
  enum Verdict: Sendable {
    case counts
    /// The signal belongs to the same stop. The text is for the log; `nil` when that was logged since the last signal
    /// that counted.
    case isSameStop(String?)
  }

  /// The last signal that counted, and its time; `nil` when none has.
  private var last: (cause: LifecycleCause, time: MonotonicTime)?
  private var count = 0
  /// Whether Ctrl-C was pressed, even if that did not count.
  private var hasKeyBeenPressed = false
  private var hasSaidSameStop = false

  /// Judges a signal. The first counts, and any that arrives `delay` or more after the last that counted; with `nil` no
  /// further one does. Else a second Ctrl-C counts, however soon it arrives. A third does not, since a key that is held down
  /// must not end the process before the save.
  mutating func receive(
    _ cause: LifecycleCause, delay: Duration?, at now: MonotonicTime
  ) -> Verdict {
    defer { if cause.isKeyPress { hasKeyBeenPressed = true } }
    if let last {
      let passed = last.time.duration(to: now)
      let isSecondPress = count == 1 && cause.isKeyPress && hasKeyBeenPressed
      guard let delay, passed >= delay || isSecondPress else {
        defer { hasSaidSameStop = true }
        return .isSameStop(
          hasSaidSameStop
            ? nil : "\(cause), \(passed.forReading) after \(last.cause): counted as the same stop")
      }
    }
    last = (cause, now)
    count += 1
    hasSaidSameStop = false
    return .counts
  }
}
