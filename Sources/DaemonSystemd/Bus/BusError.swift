// SPDX-License-Identifier: Apache-2.0
import CLinux

/// An error of the bus, or of a service on it.
///
/// A bus may be unavailable in many ways: no libsystemd, no socket, a policy that closes the connection at the first
/// call. All of them are one kind, so that a daemon needs one branch to go on without a bus.
package struct BusError: Error, CustomStringConvertible {
  package enum Kind: Sendable {
    /// There is no bus, or none any more.
    case unavailable
    /// The service denied access.
    case accessDenied
    /// The object of a call does not exist.
    case unknownObject
    case other
  }

  package let kind: Kind
  /// The error's name on the bus; empty if no service sent it.
  package let name: String
  /// The error in one sentence. A service's own text may not be one.
  package let description: String

  init(_ kind: Kind, _ description: String, name: String = "") {
    (self.kind, self.name, self.description) = (kind, name, description)
  }

  init(_ problem: String, errno: Int32, _ kind: Kind = .other) {
    self.init(kind, "\(problem): \(String(cString: strerror(errno))) (errno \(errno)).")
  }

  package static func malformed(_ subject: String) -> BusError {
    BusError(.other, "A message about \(subject) has an unexpected type.")
  }

  /// The error that a service answers with.
  init(about subject: String, name: String, text: String, errno: Int32) {
    let kind: Kind =
      switch (errno, name) {
      // The name is that of logind's answer without root or polkit.
      case (EACCES, _), (EPERM, _),
        (_, "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired"):
        .accessDenied
      // systemd answers with the last for a path that names no unit.
      case (_, "org.freedesktop.DBus.Error.UnknownObject"),
        (_, "org.freedesktop.DBus.Error.UnknownMethod"),
        (_, "org.freedesktop.DBus.Error.InvalidArgs"):
        .unknownObject
      default: .other
      }
    let answer =
      errno == ETIMEDOUT
      ? "not answered in time."
      : "answered with \(VisibleText.excerpt(name)): \(VisibleText.excerpt(text))"
    self.init(kind, "\(subject) was \(answer)", name: name)
  }
}
