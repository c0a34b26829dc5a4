// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import XCTest

/// What a daemon that terminates says on standard error, of whatever kind that is.
final class TimelineTests: XCTestCase {
  /// Of 9 s in a container, of 90 s elsewhere.
  private let title =
    /lifecycle: terminate \(SIGTERM from pid \d+ uid \d+\) in \d+(\.\d)? m?s of 90? s/

  /// Its last lines, once it has ended well.
  private func timeline(_ text: [String], file: StaticString = #filePath, line: UInt = #line)
    -> [Substring]
  {
    let lines = text.joined(separator: "\n").split(separator: "\n")
    return Array(lines.drop { $0.wholeMatch(of: title) == nil })
  }

  /// Without what a slow machine adds: how long the slowest of several hooks took, as in `saved (12 ms)`.
  private func withoutSlowest(_ line: Substring?) -> String? {
    line.map { String($0).replacing(#/ \(\d+(\.\d)? m?s\)/#, with: "") }
  }

  func testAPipeGetsLines() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["log"], stderrToStdout: true)
    try daemon.expect("foreground")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    let lines = timeline(daemon.output)
    // The launch may still have to end first: its last hook is what the test has seen.
    let row = lines.dropFirst().first { !$0.contains("(launch)") }
    XCTAssertNotNil(
      withoutSlowest(row)?.wholeMatch(
        of: #/  Logger +\|[ #]{20}  \d+(\.\d)? m?s  paused, saved, terminated/#),
      "\(daemon.output)")
    // Before anything that the program says of its end: it is not late.
    XCTAssertTrue(lines.contains { $0.hasPrefix("exit 0") }, "\(daemon.output)")
  }

  /// For a container's log, which has no journal.
  func testTransitionsAreLinesOnRequest() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["log", "all"], stderrToStdout: true)
    try daemon.expect("foreground")
    try daemon.expect("lifecycle: Started, pid \(daemon.pid), in ")
    daemon.send(SIGUSR1)
    try daemon.expect("lifecycle: Entered the background in ")
    daemon.send(SIGHUP)
    try daemon.expect("lifecycle: Reloaded in ")
    daemon.send(SIGTERM)
    try daemon.expect("lifecycle: terminate (SIGTERM ")
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  /// Whoever sends a signal sees what became of it. What nobody has asked for is silent.
  func testWhatASignalHasAskedForIsALine() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["log"], stderrToStdout: true)
    try daemon.expect("foreground")
    daemon.send(SIGUSR1)
    try daemon.expect("lifecycle: Entered the background in ")
    daemon.send(SIGUSR2)
    try daemon.expect("lifecycle: Entered the foreground in ")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertFalse(daemon.output.contains { $0.contains("Started, pid") }, "\(daemon.output)")
  }

  /// Nobody reads it: the end does not wait.
  func testAFullPipeDelaysNothing() throws {
    let path = FileManager.default.temporaryDirectory.path + "/lifecycle-full-\(getpid())"
    XCTAssertEqual(mkfifo(path, 0o600), 0)
    defer { unlink(path) }
    let pipe = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
    defer { close(pipe) }
    let page = [UInt8](repeating: UInt8(ascii: "x"), count: 4096)
    while write(pipe, page, page.count) > 0 {}
    // Room for less than the timeline: none of it, rather than half.
    var some = [UInt8](repeating: 0, count: 4096)
    _ = read(pipe, &some, some.count)
    while write(pipe, page, 64) > 0 {}
    let daemon = try ChildProcess(built("ProbeDaemon"), ["log"], stderr: path)
    try daemon.expect("foreground")
    daemon.send(SIGTERM)
    try daemon.expect("exit 0")
    XCTAssertEqual(try daemon.wait(), .status(0))
    var said: [UInt8] = []
    while case let count = read(pipe, &some, some.count), count > 0 { said += some[..<count] }
    XCTAssertFalse(String(decoding: said, as: UTF8.self).contains("terminate"))
  }
}
