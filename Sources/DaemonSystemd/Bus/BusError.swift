import CLinux

/// Why something asked of the bus did not come about.
///
/// A bus may be missing in many ways: no libsystemd, no socket, a policy that hangs up at the first call.
/// All of them are `unavailable`, so that a daemon needs one branch to go on without a bus.
package enum BusError: Error, Sendable, Hashable, CustomStringConvertible {
  /// There is no bus to talk to; the sentence says what was missing.
  case unavailable(String)
  /// The connection was up and is lost; `ECONNRESET` when the bus hung up.
  case disconnected(errno: Int32)
  case closed
  case afterFork
  /// The other side answered with an error; `name` is the error's name on the bus.
  case call(method: String, name: String, message: String, errno: Int32)
  case timedOut(method: String)
  case noSuchUnit(String)
  /// An answer or a signal is not of the type that its interface says.
  case malformedReply(String)
  /// What the caller gave can't be sent.
  case invalidArgument(String)
  /// A call into libsystemd or the kernel failed: what it was for, and the `errno` value.
  case system(String, errno: Int32)

  package var description: String {
    switch self {
    case .unavailable(let reason): "There is no bus: \(reason)."
    case .disconnected(let errno):
      "The connection to the bus is lost: \(Self.text(errno))."
    case .closed: "The connection to the bus was closed by this process."
    case .afterFork:
      "The connection to the bus belongs to the parent process; open another one after fork."
    case .call(let method, let name, let message, _):
      "\(method) was answered with \(name): \(message)"
    case .timedOut(let method): "\(method) was not answered in time."
    case .noSuchUnit(let name): "There is no unit \"\(name)\"; check its name."
    case .malformedReply(let sentence), .invalidArgument(let sentence): sentence
    case .system(let purpose, let errno): "Could not \(purpose): \(Self.text(errno))."
    }
  }

  /// Whether the other side refused on grounds of permission, as logind does without root or polkit.
  package var isAccessDenied: Bool {
    guard case .call(_, let name, _, let errno) = self else { return false }
    return errno == EACCES || errno == EPERM
      || name == "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired"
  }

  /// Whether the object or the name asked for does not exist (any more).
  var isGone: Bool {
    guard case .call(_, let name, _, _) = self else { return false }
    return name == "org.freedesktop.DBus.Error.UnknownObject"
      || name == "org.freedesktop.DBus.Error.UnknownMethod"
      || name == "org.freedesktop.systemd1.NoSuchUnit"
  }

  private static func text(_ errno: Int32) -> String {
    "\(String(cString: strerror(errno))) (errno \(errno))"
  }
}
