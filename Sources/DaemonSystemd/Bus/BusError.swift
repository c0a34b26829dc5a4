// SPDX-License-Identifier: Apache-2.0
import CLinux

/// An error of a bus call.
///
/// A bus may be unavailable in many ways: no libsystemd, no socket, a policy that closes the connection at the first
/// call. All of them are one kind, so that a daemon needs one branch to go on without a bus.
package struct BusError: Error, Sendable, CustomStringConvertible {
  enum Kind: Sendable {
    /// There is no bus.
    case unavailable
    /// The connection was lost.
    case lost
    case accessDenied
    case unknownUnit
    /// A reply or a signal does not have the type of its interface.
    case malformed
    case late
    case other
  }

  let kind: Kind
  /// The error in one sentence; the peer's own text may be none.
  package let description: String

  init(_ kind: Kind, _ description: String) { (self.kind, self.description) = (kind, description) }

  init(_ word: clinux_bus_word, about matter: BusMatter) {
    func text(_ pointer: UnsafePointer<CChar>?) -> String {
      pointer.map { String(cString: $0) } ?? ""
    }
    let reason = "\(String(cString: strerror(word.error))) (errno \(word.error))"
    let member = text(word.member)
    switch word.outcome {
    case CLINUX_BUS_UNAVAILABLE: self.init(.unavailable, "There is no bus: \(text(word.text)).")
    case CLINUX_BUS_LOST: self.init(.lost, "The connection to the bus is lost: \(reason).")
    case CLINUX_BUS_REFUSED:
      let name = text(word.name)
      // As logind does without root or polkit.
      let isDenied =
        word.error == EACCES || word.error == EPERM
        || name == "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired"
      self.init(
        isDenied ? .accessDenied : .other,
        "\(member) was answered with \(name): \(text(word.text))")
    case CLINUX_BUS_LATE: self.init(.late, "\(member) was not answered in time.")
    case CLINUX_BUS_MALFORMED:
      self.init(.malformed, "What came over the bus about \(member) is not of its type.")
    case CLINUX_BUS_UNKNOWN_UNIT:
      var name = ""
      if case .activeState(let unit) = matter { name = unit.description }
      self.init(.unknownUnit, "There is no unit \"\(name)\"; check its name.")
    default: self.init(.other, "The bus can't be used for \(member): \(reason).")
    }
  }

  /// Whether there is no bus, or no longer one: the connection is tried again.
  package var isAbsence: Bool { kind == .unavailable || kind == .lost }
  /// There is no bus.
  package var isUnavailable: Bool { kind == .unavailable }
  /// Whether the peer denied access.
  package var isAccessDenied: Bool { kind == .accessDenied }
  /// Whether systemd knows no unit of this name.
  package var isUnknownUnit: Bool { kind == .unknownUnit }
}
