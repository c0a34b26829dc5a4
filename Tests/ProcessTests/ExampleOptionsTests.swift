// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import XCTest

/// `--version` and `--check-config` of the example daemons.
final class ExampleOptionsTests: XCTestCase {
  private static let examples = ["pollerd", "echod", "standby", "clockd", "queued"]
  private let file = FileManager.default.temporaryDirectory.path + "/options-\(getpid()).conf"

  override func tearDown() { unlink(file) }

  private func run(_ name: String, _ arguments: [String]) throws -> (ChildProcess.Exit, [String]) {
    let process = try ChildProcess(built(name), arguments, stderrToStdout: true)
    return (try process.wait(), process.output)
  }

  private func check(
    _ name: String, _ arguments: [String], _ status: Int32, _ output: String,
    line: UInt = #line
  ) throws {
    let (exit, lines) = try run(name, arguments)
    XCTAssertEqual(exit, .status(status), line: line)
    XCTAssertEqual(lines, [output], line: line)
  }

  /// It is that of the last release.
  func testVersion() throws {
    let root = #filePath.components(separatedBy: "/Tests/")[0]
    let changelog = try String(contentsOfFile: root + "/CHANGELOG.md", encoding: .utf8)
    let headings = changelog.split(separator: "\n").filter { $0.hasPrefix("## ") }
    let newest = try XCTUnwrap(headings.first { $0 != "## [Unreleased]" })
    let version = newest.split(separator: "]")[0].dropFirst(4)
    for name in Self.examples { try check(name, ["--version"], 0, "\(name) \(version)") }
  }

  func testUsageNamesThem() throws {
    for name in Self.examples {
      let (exit, lines) = try run(name, ["--help"])
      XCTAssertEqual(exit, .status(0))
      for option in ["--check-config", "--version", "--help"] {
        XCTAssertTrue(lines.contains { $0.hasPrefix("  \(option) ") }, "\(name) \(option)")
      }
    }
  }

  func testAConfigurationIsValidOrNamedWithItsLine() throws {
    let long = String(repeating: "# a line of a comment\n", count: 50_000) + "speed = 2\n"
    for (name, text, status, sentence) in [
      ("pollerd", "interval = 2\n", Int32(0), " is valid"),
      ("echod", "line-limit = 100\n", 0, " is valid"),
      (
        "pollerd", "# settings\nspeed = 2\n", 78,
        ", line 2: there is no setting \"speed\", only interval and source."
      ),
      (
        "echod", "# settings\nspeed = 2\n", 78,
        ", line 2: there is no setting \"speed\", only prefix and line-limit"
      ),
      // Neither cut where it is long, nor read up to a NUL.
      ("pollerd", long, 78, " is larger than 1 MiB: it is no file of settings."),
      ("pollerd", "interval = 1\0garbage\n", 78, ", line 1: this is not valid UTF-8."),
      ("echod", "prefix = a\0b\n", 78, ", line 1: this is not valid UTF-8"),
    ] {
      try text.write(toFile: file, atomically: true, encoding: .utf8)
      try check(name, ["--check-config", "--config", file], status, "\(name): \(file)\(sentence)")
    }
  }

  func testWithoutAFileTheOptionsAreChecked() throws {
    let none = "the options are valid; there is no configuration file"
    try check("pollerd", ["--check-config"], 0, "pollerd: \(none) (--config)")
    try check("standby", ["--check-config", "/no/ledger"], 0, "standby: \(none)")
    for (name, arguments) in [
      ("pollerd", ["--interval", "soon"]), ("echod", ["--loud"]), ("standby", ["--interval", "0"]),
      ("clockd", ["seven"]), ("queued", ["now"]),
    ] {
      let (exit, lines) = try run(name, ["--check-config"] + arguments)
      XCTAssertEqual(exit, .status(64), name)
      XCTAssertEqual(lines.count, 1, name)
      XCTAssertTrue(lines.first?.hasPrefix("\(name): ") == true, name)
    }
  }
}
