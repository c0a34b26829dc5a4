// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The mutants that behave as the original does, each with the reason, as `.ci/mutation/equivalents` has them:
///
///     Sources/…/Calls.swift: open: drop `room = []`
///       An indented line, or several: why nobody can tell the difference.
///
/// They are recognised by their text, not by their line's number.
struct Equivalents {
  private(set) var reasons: [String: String] = [:]

  init(contentsOf path: String) throws {
    var key = ""
    for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
      if line.hasPrefix("#") { continue }
      if line.first?.isWhitespace == true {
        reasons[key, default: ""] += line.trimmingCharacters(in: .whitespaces) + " "
      } else {
        key = String(line)
        reasons[key] = ""
      }
    }
  }
}
