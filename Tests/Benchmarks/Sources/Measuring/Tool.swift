// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Programs of the system, found in PATH, whose output is of interest only when they fail.
package enum Tool {
  package static func run(_ arguments: String...) throws { try run(arguments) }

  package static func run(_ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    let log = FileManager.default.temporaryDirectory.appendingPathComponent(
      "benchmark-\(UUID().uuidString).log")
    _ = FileManager.default.createFile(atPath: log.path, contents: nil)
    let output = try FileHandle(forWritingTo: log)
    process.standardOutput = output
    process.standardError = output
    defer { try? FileManager.default.removeItem(at: log) }
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
      throw HarnessError("\(arguments.joined(separator: " ")) failed:\n\(text)")
    }
  }
}
