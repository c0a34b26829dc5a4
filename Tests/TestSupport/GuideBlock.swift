// SPDX-License-Identifier: Apache-2.0
import Testing

/// A fenced block of a guide.
package struct GuideBlock: Sendable, CustomTestStringConvertible {
  package let language: String
  /// Its lines, without the indentation of a list.
  package let lines: [String]
  /// The comment on the line before it: `run as a user`, or why it can't be run in a machine.
  package let note: String?
  package let heading: String
  /// The last line of text between it and the block before it.
  package let lead: String
  /// The line of the guide that it begins at.
  package let number: Int

  package var text: String { lines.joined(separator: "\n") + "\n" }
  package var testDescription: String { "line \(number)" }

  package func contains(_ words: String) -> Bool { text.contains(words) }
  package var isForAUser: Bool { note == "run as a user" }
  package var isRunElsewhere: Bool { note?.hasPrefix("not run ") == true }

  /// All of a file, in order.
  package static func all(of path: String) throws -> [GuideBlock] {
    let lines = try Package.read(path).split(separator: "\n", omittingEmptySubsequences: false)
      .map(String.init)
    var blocks: [GuideBlock] = []
    var begin: Int?
    var (heading, lead) = ("", "")
    for (index, line) in lines.enumerated() {
      let content = line.drop { $0 == " " }
      if begin == nil, line.hasPrefix("#") {
        heading = String(line.drop { $0 == "#" }.dropFirst())
      }
      guard content.hasPrefix("```") else {
        if begin == nil, !content.isEmpty { lead = String(content) }
        continue
      }
      guard let first = begin else {
        begin = index
        continue
      }
      let indentation = lines[first].prefix { $0 == " " }.count
      blocks.append(
        GuideBlock(
          language: String(lines[first].dropFirst(indentation + 3)),
          lines: lines[(first + 1)..<index].map { String($0.dropFirst(indentation)) },
          note: note(lines[first - 1]), heading: heading, lead: lead, number: first + 1))
      (begin, lead) = (nil, "")
    }
    return blocks
  }

  private static func note(_ line: String) -> String? {
    guard line.hasPrefix("<!-- "), line.hasSuffix(" -->") else { return nil }
    return String(line.dropFirst(5).dropLast(4))
  }
}
