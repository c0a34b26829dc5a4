// SPDX-License-Identifier: Apache-2.0
/// The name of a unit, checked by systemd's rules (systemd.unit(5)), so that a mistyped one is an error rather than a
/// unit that is never active.
package struct UnitName: Sendable, CustomStringConvertible {
  package let description: String

  /// Checks a full name, with its type. Templates (`getty@.service`) are refused, since they name no unit that could
  /// run.
  package init(_ name: String) throws(BusError) {
    if let reason = Self.flaw(in: name) {
      throw BusError(.other, "\"\(name)\" is not the name of a unit: \(reason).")
    }
    description = name
  }

  private static let types: Set<String> = [
    "service", "socket", "target", "device", "mount", "automount", "swap", "timer", "path", "slice",
    "scope",
  ]

  private static func flaw(in name: String) -> String? {
    guard name.utf8.count <= 255 else { return "it is longer than 255 bytes" }
    guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")) else {
      return "it has no type such as \".service\""
    }
    let type = String(Substring(name.utf8[name.utf8.index(after: dot)...]))
    guard types.contains(type) else { return "\"\(type)\" is no type of unit" }
    let stem = name.utf8[..<dot]
    guard !stem.isEmpty else { return "there is nothing before its type" }
    if !stem.allSatisfy({ $0.isLetter || $0.isDigit || ":-_.\\@".utf8.contains($0) }) {
      return "it has a character other than letters, digits and :-_.\\@"
    }
    if stem.first == UInt8(ascii: "@") { return "it begins with \"@\"" }
    if stem.firstIndex(of: UInt8(ascii: "@")) == stem.indices.last {
      return "it is a template without an instance"
    }
    return nil
  }

  // MARK: On the bus

  /// The path of the unit's object: letters and digits are kept; anything else, and a digit at the beginning, becomes
  /// `_` and two hexadecimal digits.
  package var objectPath: String { "/org/freedesktop/systemd1/unit/" + Self.label(description) }

  static func label(_ name: String) -> String {
    var label: [UInt8] = []
    for byte in name.utf8 {
      if byte.isLetter || byte.isDigit && !label.isEmpty {
        label.append(byte)
      } else {
        label += "_\(String(byte >> 4, radix: 16))\(String(byte & 15, radix: 16))".utf8
      }
    }
    return name.isEmpty ? "_" : String(decoding: label, as: UTF8.self)
  }
}
