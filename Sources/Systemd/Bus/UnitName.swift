/// The name of a unit, checked by systemd's rules (systemd.unit(5)): a mistyped one is an error at once and
/// not a unit that is inactive for ever.
///
///     let unit = try UnitName("nginx.service")
public struct UnitName: Sendable, Hashable, CustomStringConvertible {
  public let description: String

  /// Checks a full name, with its type. Templates (`getty@.service`) name no unit that could run.
  ///
  /// - Throws: `BusError.invalidArgument`, which says what is wrong.
  public init(_ name: String) throws(BusError) {
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
    let type = String(name[name.index(after: dot)...])
    guard types.contains(type) else { return "\"\(type)\" is no type of unit" }
    let stem = name.utf8[..<dot]
    guard !stem.isEmpty else { return "there is nothing before its type" }
    for byte in stem where !isAllowed(byte) {
      return "it has a character other than letters, digits and :-_.\\@"
    }
    if stem.first == UInt8(ascii: "@") { return "it begins with \"@\"" }
    if stem.firstIndex(of: UInt8(ascii: "@")) == stem.indices.last {
      return "it is a template without an instance"
    }
    return nil
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch Unicode.Scalar(byte) {
    case "a"..."z", "A"..."Z", "0"..."9", ":", "-", "_", ".", "\\", "@": true
    default: false
    }
  }

  // MARK: On the bus

  /// The path of the unit's object: letters and digits stay, anything else becomes `_` and two hexadecimal
  /// digits, and so does a digit at the beginning.
  public var objectPath: String { "/org/freedesktop/systemd1/unit/" + Self.label(description) }

  static func label(_ name: String) -> String {
    guard !name.isEmpty else { return "_" }
    let digits = Array("0123456789abcdef".utf8)
    var label: [UInt8] = []
    label.reserveCapacity(name.utf8.count * 3)
    for (index, byte) in name.utf8.enumerated() {
      switch Unicode.Scalar(byte) {
      case "a"..."z", "A"..."Z": label.append(byte)
      case "0"..."9" where index > 0: label.append(byte)
      default: label += [UInt8(ascii: "_"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: label, as: UTF8.self)
  }
}
