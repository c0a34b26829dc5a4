/// The name of a unit, checked by systemd's rules (systemd.unit(5)): a mistyped one is an error at once and
/// not a unit that is inactive for ever.
package struct UnitName: Sendable, Hashable, CustomStringConvertible {
  /// The name itself.
  package let description: String

  /// Checks a full name, with its type. Templates (`getty@.service`) name no unit that could run.
  ///
  /// - Throws: `BusError.invalidArgument`, which says what is wrong.
  package init(_ name: String) throws(BusError) {
    if let reason = Self.flaw(in: name) {
      throw .invalidArgument("\"\(name)\" is not the name of a unit: \(reason).")
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
    for byte in stem where kinds[Int(byte)] == 0 {
      return "it has a character other than letters, digits and :-_.\\@"
    }
    if stem.first == UInt8(ascii: "@") { return "it begins with \"@\"" }
    if stem.firstIndex(of: UInt8(ascii: "@")) == stem.indices.last {
      return "it is a template without an instance"
    }
    return nil
  }

  /// By byte: 2 for letters, 1 for digits, 3 for what else a name may have.
  private static let kinds: [UInt8] = {
    var kinds = [UInt8](repeating: 0, count: 256)
    for byte in UInt8(ascii: "a")...UInt8(ascii: "z") { kinds[Int(byte)] = 2 }
    for byte in UInt8(ascii: "A")...UInt8(ascii: "Z") { kinds[Int(byte)] = 2 }
    for byte in UInt8(ascii: "0")...UInt8(ascii: "9") { kinds[Int(byte)] = 1 }
    for byte in ":-_.\\@".utf8 { kinds[Int(byte)] = 3 }
    return kinds
  }()

  // MARK: On the bus

  /// The path of the unit's object: letters and digits stay, anything else becomes `_` and two hexadecimal
  /// digits, and so does a digit at the beginning.
  package var objectPath: String { "/org/freedesktop/systemd1/unit/" + Self.label(description) }

  private static let digits = Array("0123456789abcdef".utf8)

  static func label(_ name: String) -> String {
    guard !name.isEmpty else { return "_" }
    var label: [UInt8] = []
    label.reserveCapacity(name.utf8.count * 3)
    for byte in name.utf8 {
      let kind = kinds[Int(byte)]
      if kind == 2 || kind == 1 && !label.isEmpty {
        label.append(byte)
      } else {
        label.append(UInt8(ascii: "_"))
        label.append(digits[Int(byte >> 4)])
        label.append(digits[Int(byte & 15)])
      }
    }
    return String(decoding: label, as: UTF8.self)
  }
}
