// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Foundation
import TestSupport
import XCTest

/// `--version` and `--check-config` of the example daemons.
final class ExampleOptionsTests: XCTestCase {
  private static let examples = ["pollerd", "echod", "standby", "clockd"]
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

  func testVersion() throws {
    let version = LifecycleSubject.packageVersion
    for name in Self.examples { try check(name, ["--version"], 0, "\(name) \(version)") }
  }

  /// It is that of the last release.
  func testTheVersionIsThatOfTheChangelog() throws {
    let root = #filePath.components(separatedBy: "/Tests/")[0]
    let changelog = try String(contentsOfFile: root + "/CHANGELOG.md", encoding: .utf8)
    let headings = changelog.split(separator: "\n").filter { $0.hasPrefix("## ") }
    let newest = try XCTUnwrap(headings.first { $0 != "## [Unreleased]" })
    XCTAssertTrue(newest.hasPrefix("## [\(LifecycleSubject.packageVersion)] "), "\(newest)")
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

  func testAValidConfigurationIsAccepted() throws {
    try "interval = 2\n".write(toFile: file, atomically: true, encoding: .utf8)
    try check("pollerd", ["--check-config", "--config", file], 0, "pollerd: \(file) is valid")
    try "line-limit = 100\n".write(toFile: file, atomically: true, encoding: .utf8)
    try check("echod", ["--check-config", "--config", file], 0, "echod: \(file) is valid")
  }

  func testABadConfigurationIsNamedWithItsLine() throws {
    try "# settings\nspeed = 2\n".write(toFile: file, atomically: true, encoding: .utf8)
    try check(
      "pollerd", ["--config", file, "--check-config"], 78,
      "pollerd: \(file), line 2: there is no setting \"speed\", only interval and source.")
    try check(
      "echod", ["--config", file, "--check-config"], 78,
      "echod: \(file), line 2: there is no setting \"speed\", only prefix and line-limit")
  }

  /// Neither cut where it is long, nor read up to a NUL.
  func testAFileThatIsNoTextOrTooLongIsRefused() throws {
    let long = String(repeating: "# a line of a comment\n", count: 50_000) + "speed = 2\n"
    let cases = [
      ("pollerd", long, " is larger than 1 MiB: it is no file of settings."),
      ("pollerd", "interval = 1\0garbage\n", ", line 1: this is no text in UTF-8."),
      ("echod", "prefix = a\0b\n", ", line 1: this is no text in UTF-8"),
      (
        "pollerd", "interval = 1e-300\n",
        ", line 1: interval \"1e-300\" is not a number of seconds from 0.001 (to a year); write 0.5, for instance."
      ),
    ]
    for (name, text, sentence) in cases {
      try text.write(toFile: file, atomically: true, encoding: .utf8)
      try check(name, ["--check-config", "--config", file], 78, "\(name): \(file)\(sentence)")
    }
  }

  func testWithoutAFileTheOptionsAreChecked() throws {
    let none = "the options are valid; there is no configuration file"
    try check("pollerd", ["--check-config"], 0, "pollerd: \(none) (--config)")
    try check("echod", ["--check-config"], 0, "echod: \(none) (--config)")
    try check("standby", ["--check-config", "/no/ledger"], 0, "standby: \(none)")
    try check(
      "clockd", ["--check-config", "7070", "5"], 0,
      "clockd: the arguments are valid; there is no configuration file")
    for (name, arguments) in [
      ("pollerd", ["--interval", "soon"]), ("echod", ["--loud"]), ("standby", ["--interval", "0"]),
      ("clockd", ["seven"]),
    ] {
      let (exit, lines) = try run(name, ["--check-config"] + arguments)
      XCTAssertEqual(exit, .status(64), name)
      XCTAssertEqual(lines.count, 1, name)
      XCTAssertTrue(lines.first?.hasPrefix("\(name): ") == true, name)
    }
  }

  /// A bad grace period is as bad as a bad file.
  func testTheGracePeriodIsCheckedToo() throws {
    let process = try ChildProcess(
      built("pollerd"), ["--check-config"],
      environment: ["TERMINATION_GRACE_PERIOD_SECONDS": "soon"], stderrToStdout: true)
    XCTAssertEqual(try process.wait(), .status(78))
    XCTAssertEqual(process.output.count, 1)
  }
}
