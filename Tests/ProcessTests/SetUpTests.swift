// SPDX-License-Identifier: Apache-2.0
import Glibc
import TestLimits
import TestSupport
import XCTest

/// What happens to a daemon that is being set up by `runAndExit`.
final class SetUpTests: XCTestCase {
  /// None is killed by a signal, and each ends in order. The signals are blocked in the first thread, since one that
  /// comes before `main` would kill any program.
  func testAStormFromTheFirstInstructionOfMainOn() throws {
    let signals = [SIGUSR1, SIGUSR2, SIGHUP]
    for start in 0..<LongTests.count(50, long: 1000) {
      let daemon = try ChildProcess(
        built("ProbeSyncMain"), [], blocking: signals + [SIGTERM], stderrToStdout: true)
      // Some end while they are set up, others after the launch.
      for _ in 0..<(start % 10 * 100 + 1) { for signal in signals { daemon.send(signal) } }
      daemon.send(SIGTERM)
      XCTAssertEqual(try daemon.wait(), .status(0), "start \(start)")
    }
  }

  /// Its signals are not held meanwhile: it may wait for long, and its threads inherit the mask.
  func testASignalWhileTheConfigurationIsComputedHasItsDefaultAction() throws {
    let daemon = try ChildProcess(built("ProbeSyncMain"), ["raises"])
    XCTAssertEqual(try daemon.wait(), .signal(SIGTERM))
  }

  func testASignalEndsTheSetUp() throws {
    let daemon = try ChildProcess(built("ProbeSyncMain"), ["waits"], stderrToStdout: true)
    try daemon.expect("waits")
    daemon.send(SIGHUP)
    daemon.send(SIGTERM)
    // What has ended it is said, although nobody had anything to do.
    for _ in 1...2 {
      _ = try daemon.line {
        $0 == "cancelled" || $0.hasPrefix("lifecycle: terminate (SIGTERM from pid ")
      }
    }
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertFalse(daemon.output.contains("foreground"))
  }

  /// Its cancellation handlers are user code: the thread that listens, and ends the process after the exit grace, does not
  /// call them.
  func testASetUpThatBlocksWhenItIsCancelledIsLeftBehind() throws {
    let daemon = try ChildProcess(built("ProbeSyncMain"), ["blocks"])
    try daemon.expect("waits")
    daemon.send(SIGTERM)
    try daemon.expect("blocks")
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  /// What would wait for the launch, which waits for the set-up.
  func testAPostOfTheSetUpIsDeliveredAfterTheLaunch() throws {
    let daemon = try ChildProcess(built("ProbeSyncMain"), ["posts"])
    try daemon.expect("posted to 0")
    try daemon.expect("foreground")
    try daemon.expect("received in foreground")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  func testForegroundInTheSetUpIsAnError() throws {
    let daemon = try ChildProcess(built("ProbeSyncMain"), ["foreground"], stderrToStdout: true)
    XCTAssertEqual(try daemon.wait(), .status(71))
    XCTAssertEqual(daemon.output.last?.contains("write addForeground { }"), true)
  }

  func testATaskOfTheSetUpMayWaitForTheForeground() throws {
    let daemon = try ChildProcess(built("ProbeSyncMain"), ["starts"])
    try daemon.expect("in the foreground")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  /// Dispatch would end it with SIGILL.
  func testAStartWithTooFewDescriptorsSaysSo() throws {
    for count in 7...16 {
      let daemon = try ChildProcess(
        "/bin/sh", ["-c", "ulimit -n \(count); exec \"$0\"", built("ProbeSyncMain")],
        stderrToStdout: true)
      XCTAssertEqual(try daemon.wait(), .status(71), "\(count)")
      XCTAssertEqual(
        daemon.output.last,
        "ProbeSyncMain: Could not open the 16 descriptors of a start: Too many open files (errno 24)."
          + " Raise LimitNOFILE=, or ulimit -n.", "\(count)")
    }
  }

  func testAnErrorIsPrintedAndDeterminesTheStatus() throws {
    for error in ["throws", "misconfigured"] {
      let daemon = try ChildProcess(built("ProbeSyncMain"), [error], stderrToStdout: true)
      XCTAssertEqual(try daemon.wait(), .status(78))
      // Before it a line may name the platform that the tests run on.
      XCTAssertEqual(daemon.output.first, "main")
      XCTAssertEqual(daemon.output.last, "ProbeSyncMain: There is no table.")
    }
  }

  func testACallInATaskIsLogged() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["in-a-task"], stderrToStdout: true)
    try daemon.expect("foreground: launch")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    let logged = daemon.output.contains { $0.contains("runAndExit was called in a task") }
    XCTAssertTrue(logged, daemon.output.joined(separator: "\n"))
  }
}
