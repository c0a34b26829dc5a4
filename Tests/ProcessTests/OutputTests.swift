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

  /// `daemon | head -1` ends no daemon before it has saved; its children get SIGPIPE's default action back.
  func testAReaderThatIsGoneCostsNoSave() throws {
    let script = """
      { "$0" print saving & echo "pid $!" >&2; wait $!; echo "status $?" >&2; } |
        (head -n 1; exec </dev/null; echo gone >&2; sleep 1000)
      """
    let shell = try ChildProcess(
      "/bin/sh", ["-c", script, built("ProbeDaemon")], stderrToStdout: true)
    let pid = try XCTUnwrap(Int32(try shell.expect("pid ").dropFirst(4)))
    try shell.expect("gone")
    kill(pid, SIGTERM)
    try shell.expect("status 0")
  }

  func testAStreamThatAnotherThreadHoldsDelaysNoStart() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["print", "held"])
    try daemon.expect("foreground")
    daemon.send(SIGKILL)
    XCTAssertEqual(try daemon.wait(), .signal(SIGKILL))
  }
}
