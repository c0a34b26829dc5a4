// SPDX-License-Identifier: Apache-2.0
/// A field of a journal entry: a name and a value.
///
/// A value may hold any bytes, newlines and NUL included. An entry may have several fields of one name.
/// Source: systemd's "Native Journal Protocol", systemd.journal-fields(7).
package struct JournalField: Sendable, Hashable {
  /// The name: 1 to 64 characters of A–Z, 0–9 and _, beginning with a letter.
  package let name: String
  package let value: [UInt8]

  /// Makes a field. Throws ``SystemdError/invalidArgument(_:)`` for a name that the journal would drop.
  package init(_ name: String, bytes: [UInt8]) throws(SystemdError) {
    if let reason = Self.objection(to: name) {
      throw .invalidArgument("The journal field name \"\(name)\" \(reason).")
    }
    self.name = name
    value = bytes
  }

  package init(_ name: String, _ value: String) throws(SystemdError) {
    try self.init(name, bytes: Array(value.utf8))
  }

  /// Makes a field whose name is a literal in this package.
  package init(known name: StaticString, _ value: String) {
    self.name = name.description
    self.value = Array(value.utf8)
  }

  private static func objection(to name: String) -> String? {
    guard let first = name.utf8.first else { return "is empty" }
    if name.utf8.count > 64 { return "is longer than 64 bytes" }
    if first == UInt8(ascii: "_") {
      return "begins with _, which only the journal's own fields may"
    }
    if !name.utf8.allSatisfy({ $0.isUppercase || $0.isDigit || $0 == UInt8(ascii: "_") }) {
      return "has something other than A-Z, 0-9 and _"
    }
    if first.isDigit { return "begins with a digit" }
    return nil
  }
}
