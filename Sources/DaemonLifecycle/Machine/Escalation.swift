// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// Which terminating signals count, since one stop often arrives as several: a wrapper relays it, the terminal sends it
/// to all, a supervisor sends it twice.
struct Escalation: Sendable {
  enum Verdict: Sendable {
    case counts
    /// The same stop again. What to say of it; `nil`: that was said of one since the last that counted.
    case isSameStop(String?)
  }

  /// The last signal that counted, and when; `nil`: none has.
  private var last: (cause: LifecycleCause, time: MonotonicTime)?
  private var count = 0
  /// Somebody has pressed the key, whether or not that counted.
  private var hasKeyBeenPressed = false
  private var hasSaidSameStop = false

  /// The first counts, and whatever comes `delay` or more after the last that did; `nil`: nothing more. A second press of
  /// the key is meant, however soon it comes. A third is not: a key that is held must not end the process unsaved.
  mutating func receive(
    _ cause: LifecycleCause, delay: Duration?, at now: MonotonicTime
  ) -> Verdict {
    defer { if cause.isKeyPress { hasKeyBeenPressed = true } }
    if let last, let delay {
      let isLateEnough = last.time.duration(to: now) >= delay
      let isSecondPress = count == 1 && cause.isKeyPress && hasKeyBeenPressed
      guard isLateEnough || isSecondPress else { return sameStop(cause, as: last, at: now) }
    } else if let last {
      return sameStop(cause, as: last, at: now)
    }
    last = (cause, now)
    count += 1
    hasSaidSameStop = false
    return .counts
  }

  private mutating func sameStop(
    _ cause: LifecycleCause, as last: (cause: LifecycleCause, time: MonotonicTime),
    at now: MonotonicTime
  ) -> Verdict {
    defer { hasSaidSameStop = true }
    let later = last.time.duration(to: now).forReading
    return .isSameStop(
      hasSaidSameStop ? nil : "\(cause), \(later) after \(last.cause): taken as the same stop")
  }
}
