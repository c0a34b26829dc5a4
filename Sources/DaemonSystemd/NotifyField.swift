// SPDX-License-Identifier: Apache-2.0
/// A field of a notification to the service manager, as in sd_notify(3).
///
/// ```swift
/// try notify.send([.ready, .status("Serving 12 feeds")])
/// ```
///
/// A field is checked when it is sent: no value can contain a second field. The number in brackets is the first version
/// of systemd that supports the field; older versions ignore it. Minor versions of this package may add cases.
#if hasAttribute(nonexhaustive)
  @nonexhaustive
#endif
public enum NotifyField: Sendable, Hashable {
  /// `READY=1`: the start, or a reload, has ended.
  case ready
  /// `STOPPING=1` (217): the service is stopping. Since 259 this is final.
  case stopping
  /// `RELOADING=1` and `MONOTONIC_USEC=` (217, 253): a reload has begun at this time of `CLOCK_MONOTONIC`, by default
  /// when this is sent. It must be later than the signal that requested the reload. The manager then waits for
  /// ``ready``.
  case reloading(at: Duration? = nil)
  /// `STATUS=` (233): a line that `systemctl status` shows. It is escaped as by ``VisibleText/line(_:)``, and cut
  /// to fit the message. An empty text clears it.
  case status(String)
  /// `EXTEND_TIMEOUT_USEC=` (236): starting, stopping or reloading may take this long from now, if the configured limit
  /// ends sooner. Repeat it within each interval.
  case extendTimeout(Duration)
  /// `WATCHDOG=1`: a watchdog ping.
  case watchdog
  /// `EXIT_STATUS=` (254): 0...255; informational, for the manager of a container or a virtual machine.
  case exitStatus(Int32)

  /// Any other field: one of systemd's, such as `NOTIFYACCESS`, `ERRNO`, `RESTART_RESET`, `MAINPID`, `WATCHDOG_USEC` or
  /// `WATCHDOG` with the value `trigger`, or a private one, whose name should begin with `X_` and a namespace.
  ///
  /// The name begins with A–Z and goes on with A–Z, 0–9 and `_`. It can't be a name of the other cases, except
  /// `WATCHDOG`, or one that needs a descriptor: ``Preservation`` stores those. The value has no control characters.
  case custom(name: String, value: String)
}

// MARK: - Fields as lines

extension NotifyField {
  typealias Line = (name: String, value: String)

  /// Returns the lines of this field, after a check of its values.
  func lines() throws(SystemdError) -> [Line] {
    switch self {
    case .ready: [("READY", "1")]
    case .stopping: [("STOPPING", "1")]
    case .reloading(let time):
      [
        ("RELOADING", "1"),
        (
          "MONOTONIC_USEC",
          String((time.map { MonotonicTime(sinceBoot: $0) } ?? .now()).microseconds)
        ),
      ]
    case .status(let text): [("STATUS", text)]
    case .extendTimeout(let time): [try Self.line("EXTEND_TIMEOUT_USEC", time)]
    case .watchdog: [("WATCHDOG", "1")]
    case .exitStatus(let number): [try Self.exitStatus(number)]
    case .custom(let name, let value): [try Self.custom(name, value)]
    }
  }

  private static func custom(_ name: String, _ value: String) throws(SystemdError) -> Line {
    let valid = name.utf8.allSatisfy { $0.isUppercase || $0.isDigit || $0 == UInt8(ascii: "_") }
    guard valid, name.utf8.first?.isUppercase == true else {
      throw .invalidArgument(
        "\"\(name)\" can't name a field: it begins with A–Z, and A–Z, 0–9 and _ may follow.")
    }
    switch name {
    case "READY", "RELOADING", "MONOTONIC_USEC", "STOPPING", "STATUS", "EXTEND_TIMEOUT_USEC",
      "EXIT_STATUS", "MAINPIDFD", "BARRIER", "FDSTORE", "FDSTOREREMOVE", "FDNAME",
      "FDPOLL":
      throw .invalidArgument(
        "\(name)= is not a custom field: NotifyField has a case for it, or it needs a descriptor.")
    default: break
    }
    guard value.utf8.allSatisfy({ !$0.isControl }) else {
      throw .invalidArgument("The value of \(name)= has a line break or another control character.")
    }
    return (name, value)
  }

  private static func exitStatus(_ number: Int32) throws(SystemdError) -> Line {
    guard (0...255).contains(number) else {
      throw .invalidArgument("EXIT_STATUS= can't be \(number): it is 0...255.")
    }
    return ("EXIT_STATUS", String(number))
  }

  /// A line with a time in microseconds, rounded up so that it never becomes zero.
  private static func line(_ name: String, _ time: Duration) throws(SystemdError) -> Line {
    guard time > .zero else {
      throw .invalidArgument("\(name)= can't be zero or negative, as \(time) is.")
    }
    // `UInt64.max` means infinity in systemd. Checked first, since `components` traps beyond 2^63 seconds.
    guard time < .microseconds(UInt64.max) else {
      throw .invalidArgument("\(name)= can't be \(time): that is more than 2^64 microseconds.")
    }
    let (seconds, attoseconds) = time.components
    let fraction = (attoseconds + 999_999_999_999) / 1_000_000_000_000
    return (name, String(UInt64(seconds) * 1_000_000 + UInt64(fraction)))
  }
}
