// SPDX-License-Identifier: Apache-2.0
@testable import DaemonSystemd

extension FuzzTarget {
  /// Names of units, and their objects' paths, which decode to the name.
  static let units = FuzzTarget(name: "units") { input in
    let name = input.allText()
    let label = UnitName.label(name)
    require(decoded(label) == Array(name.utf8), "\(name) became \(label)")
    do throws(BusError) {
      let unit = try UnitName(name)
      require(unit.description == name, "\(name) became \(unit)")
      require(
        name.utf8.count <= 255 && name.utf8.contains(UInt8(ascii: "."))
          && name.utf8.allSatisfy { $0 > 32 && $0 < 127 && $0 != 47 }, "\(name) is no name")
      require(
        unit.objectPath.utf8.allSatisfy {
          $0.isLetter || $0.isDigit || $0 == 47 || $0 == 95
        }, unit.objectPath)
      require(unit.objectPath.hasSuffix("/" + label), unit.objectPath)
    } catch { requireSentence(error) }
    _ = UnitJob(name).isRestart
  }

  private static func decoded(_ label: String) -> [UInt8]? {
    if label == "_" { return [] }
    var bytes: [UInt8] = []
    var rest = Array(label.utf8)[...]
    while let byte = rest.popFirst() {
      if byte != UInt8(ascii: "_") {
        bytes.append(byte)
        continue
      }
      let digits = String(decoding: rest.prefix(2), as: UTF8.self)
      guard digits.utf8.count == 2, let value = UInt8(digits, radix: 16) else { return nil }
      bytes.append(value)
      rest = rest.dropFirst(2)
    }
    return bytes
  }
}
