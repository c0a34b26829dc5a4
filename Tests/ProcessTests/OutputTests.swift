// SPDX-License-Identifier: Apache-2.0
import TestSupport
import XCTest

/// When a reader gets what a daemon prints, where standard output is a pipe.
final class OutputTests: XCTestCase {
  /// What was printed before the start too.
  func testWhatIsPrintedIsThereAtOnce() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["print"])
    try daemon.expect("before the start")
    // The next lines come while the daemon runs on.
    try daemon.expect("in a hook")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertEqual(daemon.output.count { $0 == "before the start" }, 1)
  }

  func testAStreamWithALargeBufferIsLeftAsItIs() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["print", "buffered"])
    try daemon.expect("foreground")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertEqual(daemon.output.suffix(2), ["before the start", "in a hook"], "at the end")
  }

  func testAStreamThatAnotherThreadHoldsDelaysNoStart() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["print", "held"])
    try daemon.expect("foreground")
    daemon.send(SIGKILL)
    XCTAssertEqual(try daemon.wait(), .signal(SIGKILL))
  }
}
