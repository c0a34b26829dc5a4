// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import Testing

/// A service that users take as a model: each unit file of the package, and each unit of a document.
struct ModelUnit: Sendable, CustomTestStringConvertible {
  let source: String
  let lines: [String]

  var testDescription: String { source }
  var isForAUser: Bool { source.contains("/user/") }
  /// Part of a unit's name.
  var stem: String { String(source.map { $0.isLetter || $0.isNumber ? $0 : "_" }) }

  /// A block without a program, or without a restart, is a part of a unit: a drop-in.
  private init?(_ source: String, _ lines: [String]) {
    guard lines.contains("[Service]"), lines.contains(where: { $0.hasPrefix("ExecStart=") }),
      lines.contains(where: { $0.hasPrefix("Restart=") })
    else { return nil }
    (self.source, self.lines) = (source, lines)
  }

  static func all() throws -> [ModelUnit] {
    var units: [ModelUnit] = []
    for folder in ["README.md", "Sources", "Examples", "systemd"] {
      let path = Package.root + "/" + folder
      let below = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
      let files = below.isEmpty ? [folder] : below.sorted().map { folder + "/" + $0 }
      for file in files where !file.contains("/.build/") {
        if file.hasSuffix(".service") {
          let lines = try Package.read(file).split(separator: "\n").map(String.init)
          units += [ModelUnit(file, lines)].compactMap(\.self)
        } else if file.hasSuffix(".md") {
          units += try GuideBlock.all(of: file).compactMap {
            $0.language == "ini" ? ModelUnit("\(file):\($0.number)", $0.lines) : nil
          }
        }
      }
    }
    return units
  }

  /// Lines of a section that begin so, such as those that say when the unit is started and stopped.
  func lines(of section: String, _ prefixes: String...) -> [String] {
    lines.drop { $0 != "[\(section)]" }.dropFirst().prefix { !$0.hasPrefix("[") }
      .filter { line in prefixes.contains { line.hasPrefix($0) } }
  }
}

extension MachineTest {
  /// The unit as its lines decide when it is started, started again and stopped, with other commands.
  func install(_ unit: ModelUnit, _ commands: String) async throws -> Service {
    let order = unit.lines(of: "Unit", "After=", "Wants=", "StartLimit")
    return try await install(
      unique(unit.stem) + ".service",
      """
      [Unit]
      \(order.joined(separator: "\n"))
      [Service]
      \(unit.lines(of: "Service", "Restart", "KillMode=").joined(separator: "\n"))
      \(commands)

      """)
  }
}
