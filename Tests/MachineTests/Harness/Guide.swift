// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

/// A fenced block of a guide.
struct GuideBlock: Sendable, CustomTestStringConvertible {
  let language: String
  /// Its lines, without the indentation of a list.
  let lines: [String]
  /// The comment on the line before it: `run as a user`, or why it can't be run in a machine.
  let note: String?
  /// The line of the guide that it begins at.
  let number: Int

  var text: String { lines.joined(separator: "\n") + "\n" }
  var testDescription: String { "line \(number)" }

  func contains(_ words: String) -> Bool { text.contains(words) }
  var isForAUser: Bool { note == "run as a user" }
  var isRunElsewhere: Bool { note?.hasPrefix("not run ") == true }

  /// All of a file, in order.
  static func all(of path: String) throws -> [GuideBlock] {
    let lines = try Package.read(path).split(separator: "\n", omittingEmptySubsequences: false)
      .map(String.init)
    var blocks: [GuideBlock] = []
    var begin: Int?
    for (index, line) in lines.enumerated() {
      let content = line.drop { $0 == " " }
      guard content.hasPrefix("```") else { continue }
      guard let first = begin else {
        begin = index
        continue
      }
      let indentation = lines[first].prefix { $0 == " " }.count
      blocks.append(
        GuideBlock(
          language: String(lines[first].dropFirst(indentation + 3)),
          lines: lines[(first + 1)..<index].map { String($0.dropFirst(indentation)) },
          note: note(lines[first - 1]), number: first + 1))
      begin = nil
    }
    return blocks
  }

  private static func note(_ line: String) -> String? {
    guard line.hasPrefix("<!-- "), line.hasSuffix(" -->") else { return nil }
    return String(line.dropFirst(5).dropLast(4))
  }
}
