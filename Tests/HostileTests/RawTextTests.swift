// SPDX-License-Identifier: Apache-2.0
import Glibc
import TestSupport
import XCTest

/// A hook fails with a text that would forge log lines and move the cursor.
final class RawTextTests: XCTestCase {
  func testAnErrorIsOneLineWithItsControlsEscaped() throws {
    let daemon = try ChildProcess(
      built("ProbeDaemon"), ["hostile-error"], stderrToStdout: true)
    try daemon.expect("foreground")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(70))
    let text = #"refused\n<0>lifecycle: all is well\u{1b}[2J\u{202e}"#
    let lines = daemon.output.filter { $0.contains("refused") }
    // The problem, and its row in the timeline.
    XCTAssertEqual(lines.count, 2, "\(daemon.output)")
    XCTAssertTrue(lines.first?.hasPrefix("lifecycle: ") == true)
    XCTAssertTrue(lines.first?.hasSuffix(text) == true)
    for line in daemon.output {
      XCTAssertFalse(line.hasPrefix("<0>"))
      XCTAssertFalse(line.unicodeScalars.contains { $0 == "\u{1b}" || $0 == "\u{202e}" }, line)
    }
  }
}
