// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Foundation
import TestSupport
import XCTest

/// Signals in real processes: every promise about them that a mock can't show.
final class SignalTests: XCTestCase {
  private func started(
    ignoring: [Int32] = [], blocking: [Int32] = []
  ) throws -> ChildProcess {
    let daemon = try ChildProcess(
      built("ProbeDaemon"), ["log"], ignoring: ignoring, blocking: blocking)
    try daemon.expect("foreground")
    return daemon
  }

  func testTransitionsThroughItsLifeInOrder() throws {
    let daemon = try started()
    daemon.send(SIGUSR1)
    try daemon.expect("save")
    daemon.send(SIGUSR2)
    try daemon.expect("foreground")
    daemon.send(SIGHUP)
    try daemon.expect("reload")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertEqual(
      daemon.output.map { $0.prefix { $0 != ":" } }.filter { !$0.hasPrefix("entry") },
      [
        "launch", "foreground", "background", "save", "foreground", "save", "reload", "background",
        "save", "terminate", "exit 0",
      ])
  }

  func testCountsCoalescedDeliveries() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["late-launch"])
    try daemon.expect("launching")
    // The launch holds the reload back; deliveries in between are taken one by one or together, and the
    // request that waits is one.
    for _ in 0..<50 { daemon.send(SIGHUP) }
    try daemon.expect("reload: SIGHUP from pid \(getpid())")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertEqual(daemon.output.filter { $0.hasPrefix("reload") }.count, 1)
    let launched = try XCTUnwrap(daemon.output.firstIndex { $0.hasPrefix("foreground") })
    let reloaded = try XCTUnwrap(daemon.output.firstIndex { $0.hasPrefix("reload") })
    XCTAssertLessThan(launched, reloaded, "a reload waits for the launch")
  }

  func testTerminationDuringTheLaunchEndsAtOnce() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["late-launch"])
    try daemon.expect("launching")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertFalse(daemon.output.contains { $0.hasPrefix("foreground") })
    XCTAssertFalse(daemon.output.contains("launch"), "an observer was launched after the SIGTERM")
    XCTAssertFalse(
      daemon.output.contains { $0.hasPrefix("save") },
      "an observer that was never launched has nothing to save")
  }

  /// As by nohup(1), and by a shell for a job in the background.
  func testWhatIsIgnoredAtTheStartStaysSo() throws {
    let daemon = try started(ignoring: [SIGHUP, SIGINT])
    daemon.send(SIGHUP)
    daemon.send(SIGINT)
    daemon.send(SIGUSR1)
    try daemon.expect("background")
    daemon.send(SIGTERM)
    try daemon.expect("terminate: SIGTERM")
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertFalse(daemon.output.contains { $0.hasPrefix("reload") || $0.contains("SIGINT") })
  }

  /// A subject that was only made, or whose start failed, has changed nothing, and has not the service manager either.
  func testNothingIsChangedBeforeTheStart() throws {
    let manager = try FakeServiceManager()
    let daemon = try ChildProcess(
      built("ProbeDaemon"), ["unstarted"], environment: manager.environment, stderrToStdout: true)
    XCTAssertEqual(try daemon.wait(), .status(0), daemon.output.joined(separator: "\n"))
    for name in ["made", "failed", "in use"] {
      XCTAssertTrue(daemon.output.contains("\(name): same"), daemon.output.joined(separator: "\n"))
    }
    XCTAssertFalse(daemon.output.contains { $0.contains("already notifies systemd") })
    _ = try manager.next(containing: "READY=1")
  }

  func testSignalsThatWereBlockedAtTheStartArrive() throws {
    let daemon = try started(blocking: [SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT])
    daemon.send(SIGUSR1)
    try daemon.expect("background")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  func testASynchronousMainAndTopLevelCode() throws {
    for program in ["ProbeSyncMain", "ProbeTopLevel"] {
      let daemon = try ChildProcess(built(program), [])
      try daemon.expect("foreground")
      daemon.send(SIGTERM)
      try daemon.expect("save: SIGTERM")
      XCTAssertEqual(try daemon.wait(), .status(0))
    }
  }

  func testTwoSubjectsCannotClaimOneSignal() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["two-subjects"])
    try daemon.expect("in use: SIGUSR1")
    try daemon.expect("foreground")
    daemon.send(SIGUSR2)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  func testStopPutsTheDispositionsBack() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["stop"])
    try daemon.expect("stopped, SIGUSR2 is ignored again")
    try daemon.expect("background")  // the subject goes on
    daemon.send(SIGUSR2)
    daemon.send(SIGUSR1)
    XCTAssertEqual(try daemon.wait(), .signal(SIGUSR1))
  }

  func testAForkWithoutExecDoesNotDisturbTheParent() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["fork"])
    let line = try daemon.expect("child ")
    let child = try XCTUnwrap(pid_t(line.dropFirst(6)))
    kill(child, SIGUSR1)
    try daemon.expect("child ended by signal \(SIGUSR1)")
    daemon.send(SIGUSR2)  // in the foreground already: nothing
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertEqual(
      daemon.output.filter { $0.hasPrefix("background") }.count, 1,
      "the child's signal reached the parent")
  }

  func testHooksSpawnChildrenWithNothingBlocked() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["spawn"])
    try daemon.expect("blocked in the hook: []")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  func testNeedsNoFoundation() throws {
    let daemon = try started()
    let libraries = daemon.mappedFiles()
    XCTAssertTrue(libraries.contains { $0.contains("ProbeDaemon") }, "the maps were not read")
    XCTAssertFalse(libraries.contains { $0.contains("Foundation") }, "Foundation is loaded")
  }
}
