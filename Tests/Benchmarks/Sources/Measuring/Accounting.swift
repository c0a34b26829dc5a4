// SPDX-License-Identifier: Apache-2.0
import Foundation

/// What the kernel says of a process, over all its threads.
package struct Accounting {
  package var threads = 0
  /// Voluntary ones: the others are the doing of what else runs on the machine.
  package var contextSwitches = 0
  /// For which its threads have run, in nanoseconds.
  package var ran = 0
  package var residentKilobytes = 0
  /// What of it is the process's own, and not pages of files that others can share.
  package var anonymousKilobytes = 0

  package init(of child: Child) throws {
    let tasks = "/proc/\(child.pid)/task"
    for task in try FileManager.default.contentsOfDirectory(atPath: tasks) {
      // A thread may end between the listing and the look at it.
      guard let status = try? String(contentsOfFile: "\(tasks)/\(task)/status", encoding: .utf8)
      else { continue }
      threads += 1
      contextSwitches += Self.number("voluntary_ctxt_switches:", status)
      residentKilobytes = Self.number("VmRSS:", status)
      anonymousKilobytes = Self.number("RssAnon:", status)
      let schedule = try? String(contentsOfFile: "\(tasks)/\(task)/schedstat", encoding: .utf8)
      ran += schedule?.split(separator: " ").first.flatMap { Int($0) } ?? 0
    }
  }

  private static func number(_ field: String, _ status: String) -> Int {
    for line in status.split(separator: "\n") where line.hasPrefix(field) {
      let digits = line.dropFirst(field.count).filter(\.isNumber)
      return Int(digits) ?? 0
    }
    return 0
  }
}
