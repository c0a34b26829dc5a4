// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport

/// `RunningUnderOtherInits.md`, whose service definitions and commands the tests use as they stand there.
enum Guide {
  struct Section {
    /// What the definition consists of, by path; a file whose path was not given whole is not installed.
    var files: [String: String] = [:]
    /// The commands, by the word that their comment begins with.
    var commands: [String: String] = [:]
  }

  private static let path = "Sources/DaemonLifecycle/DaemonLifecycle.docc/RunningUnderOtherInits.md"

  /// The part about an init.
  static func section(of wanted: Init) throws -> Section {
    var section = Section()
    for block in try blocks(under: wanted.rawValue) {
      if let file = file(named: block.lead) {
        section.files[file] = block.text
      } else {
        try addCommands(block.text, to: &section)
      }
    }
    return section
  }

  /// What is done before, whichever init it is.
  static func preparation() throws -> String {
    try blocks(under: "the user and its files").map(\.text).joined()
  }

  private static func addCommands(_ text: String, to section: inout Section) throws {
    for line in text.split(separator: "\n") {
      let parts = line.components(separatedBy: " # ")
      guard parts.count == 2, let word = parts[1].split(separator: ":").first else {
        throw GuideError("\(path): no comment says what \"\(line)\" is")
      }
      section.commands[String(word)] = parts[0]
    }
  }

  /// The fenced blocks under a heading, in their order.
  private static func blocks(under heading: String) throws -> [GuideBlock] {
    let blocks = try GuideBlock.all(of: path).filter { $0.heading.lowercased() == heading }
    if blocks.isEmpty { throw GuideError("\(path) has no section \"\(heading)\"") }
    return blocks
  }

  /// The name in the line before a block, such as "`/etc/finit.d/pollerd.conf`:" and "The end of `Dockerfile`:".
  private static func file(named line: String) -> String? {
    guard line.contains("`:") || line.hasPrefix("`/") else { return nil }
    return line.split(separator: "`").dropFirst(line.hasPrefix("`") ? 0 : 1).first.map(String.init)
  }
}

/// What the guide lacks for its tests.
struct GuideError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
