// SPDX-License-Identifier: Apache-2.0
import Foundation
import Measuring

/// Lines about what goes on are for standard error: standard output has the table.
func progress(_ line: String) { FileHandle.standardError.write(Data((line + "\n").utf8)) }

func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

extension Results {
  /// The machine, the table of medians with quartiles, and then the goals.
  func table(machine: String) -> String {
    var lines = ["Measured on \(machine)"]
    var row = ""
    for one in measurements {
      if one.row != row {
        row = one.row
        lines += ["", row]
      }
      let spread = "\(short(one.low)) … \(short(one.high))"
      lines.append(
        "  \(pad(one.contestant, 46)) \(pad(one.metric, 12)) "
          + "\(pad(short(one.median), 9, left: true)) \(pad(one.unit, 10)) \(spread)")
    }
    lines += ["", "Goals"]
    for one in verdicts {
      lines.append(
        "  \(pad(one.isMet ? "met" : "NOT MET", 8)) \(pad(short(one.measured) + " " + one.unit, 12, left: true))"
          + "  \(one.row): \(one.goal)")
    }
    if !notes.isEmpty { lines += ["", "Beside them"] + notes.map { "  " + $0 } }
    if !omissions.isEmpty { lines += ["", "Not measured"] + omissions.map { "  " + $0 } }
    return lines.joined(separator: "\n") + "\n"
  }

  private func pad(_ text: String, _ width: Int, left: Bool = false) -> String {
    let space = String(repeating: " ", count: max(0, width - text.count))
    return left ? space + text : text + space
  }
}
