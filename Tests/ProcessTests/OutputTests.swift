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

  // MARK: A log of one's own

  private func daemonWithItsOwnLog(_ arguments: String...) throws -> ChildProcess {
    try ChildProcess(built("ProbeDaemon"), ["own-log"] + arguments, stderrToStdout: true)
  }

  /// It has all that the journal would have, and standard error nothing.
  func testALogOfOnesOwnReceivesAll() throws {
    let daemon = try daemonWithItsOwnLog()
    try daemon.expect("entry notice launch Started, pid \(daemon.pid), in ")
    daemon.send(SIGHUP)
    try daemon.expect("entry error reload Reload rejected after ")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    let lines = daemon.output
    // The timeline of the stop is the last entry, whose lines are not one.
    let timeline = try XCTUnwrap(
      lines.lastIndex { $0.hasPrefix("entry notice terminate terminate (SIGTERM from pid ") })
    XCTAssertTrue(lines[timeline...].contains { $0.hasPrefix("  Logger ") }, "\(lines)")
    XCTAssertFalse(lines.contains { $0.hasPrefix("lifecycle: ") }, "\(lines)")
  }

  /// Nothing is lost, whatever it does.
  func testWhatALogOfOnesOwnDoesNotTakeIsOnStandardError() throws {
    for fault in ["throws", "blocks"] {
      let daemon = try daemonWithItsOwnLog(fault)
      try daemon.expect("lifecycle: Started, pid \(daemon.pid), in ")
      daemon.send(SIGHUP)
      try daemon.expect("lifecycle: Reload rejected after ")
      daemon.send(SIGTERM)
      XCTAssertEqual(try daemon.wait(), .status(0), fault)
      XCTAssertTrue(
        daemon.output.contains { $0.hasPrefix("lifecycle: terminate (SIGTERM from pid ") }, fault)
    }
  }

  /// Nor is the reason why it could not start.
  func testASetUpThatFailsIsSaidWithALogThatBlocks() throws {
    let daemon = try ChildProcess(
      built("ProbeSyncMain"), ["log-blocks", "throws"], stderrToStdout: true)
    XCTAssertEqual(try daemon.wait(), .status(78))
    XCTAssertTrue(daemon.output.contains("lifecycle: There is no table."))
  }

  /// A third signal waits for nobody.
  func testWhatALogOfOnesOwnHasNotTakenBeforeAThirdSignalIsOnStandardError() throws {
    let daemon = try daemonWithItsOwnLog("blocks", "hangs")
    try daemon.expect("foreground")
    daemon.send(SIGTERM)
    try daemon.expect("hangs")
    daemon.send(SIGTERM)
    try daemon.expect("is cancelled")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(143))
    XCTAssertTrue(daemon.output.contains { $0.hasPrefix("lifecycle: Stopping (") })
  }

  func testAStreamThatAnotherThreadHoldsDelaysNoStart() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["print", "held"])
    try daemon.expect("foreground")
    daemon.send(SIGKILL)
    XCTAssertEqual(try daemon.wait(), .signal(SIGKILL))
  }
}
