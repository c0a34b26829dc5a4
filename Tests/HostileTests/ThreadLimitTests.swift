// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import XCTest

/// A daemon whose user has no thread left to have.
final class ThreadLimitTests: XCTestCase {
  /// The limit does not bind root: as a user of its own, who owns nothing else.
  private func started(_ arguments: [String]) throws -> ChildProcess {
    try started(built("ProbeDaemon"), arguments, 0)
  }

  private func started(_ program: String, _ arguments: [String], _ number: pid_t) throws
    -> ChildProcess
  {
    guard getuid() == 0 else { return try ChildProcess(program, arguments, stderrToStdout: true) }
    let user = 54_000 + getpid() % 1_000 * 10 + number
    func asUser(_ command: [String]) throws -> ChildProcess {
      try ChildProcess(
        "/usr/bin/setpriv", ["--reuid=\(user)", "--regid=\(user)", "--clear-groups"] + command,
        stderrToStdout: true)
    }
    guard access("/usr/bin/setpriv", X_OK) == 0,
      try asUser([built("ProbeDaemon"), "?"]).wait() == .status(64)
    else { throw XCTSkip("no setpriv(1), or no access to the build folder for another user") }
    return try asUser([program] + arguments)
  }

  /// Waits until the last thread of Swift's pool has ended, 5 s after its work.
  private func waitUntilIdle(_ daemon: ChildProcess) throws {
    let tasks = "/proc/\(daemon.pid)/task"
    try eventually {
      try FileManager.default.contentsOfDirectory(atPath: tasks).allSatisfy {
        let name = try? String(contentsOfFile: "\(tasks)/\($0)/comm", encoding: .utf8)
        return name?.hasSuffix("default-qos\n") != true
      }
    }
  }

  /// With too few to begin with: the start fails, or SIGTERM ends what waits for one.
  func testAStartFailsOrCanBeEnded() throws {
    try skipUnlessLong()
    let daemons = try (1...7).map { count in
      try started("/usr/bin/prlimit", ["--nproc=\(count)", built("ProbeSyncMain")], pid_t(count))
    }
    for daemon in daemons {
      try eventually {
        let caught = processStatus("SigCgt", of: daemon.pid).flatMap { UInt64($0, radix: 16) }
        return caught.map { $0 & 1 << UInt64(SIGTERM - 1) != 0 } == true
          || (try? daemon.waitUntilEnded(within: 0)) != nil
      }
      daemon.send(SIGTERM)
      let exit = try daemon.wait()
      if exit == .status(71) {
        XCTAssertTrue(daemon.output.contains { $0.contains("Could not create the threads") })
      } else {
        XCTAssertEqual(exit, .status(0), daemon.output.joined(separator: "\n"))
        XCTAssertTrue(
          daemon.output.contains { $0.contains("raise TasksMax=.") || $0.hasPrefix("foreground") })
      }
    }
  }

  /// Idle, so that threads which end when there is nothing to do have ended.
  func testAnIdleDaemonSavesAndExits() throws {
    try skipUnlessLong()
    let daemon = try started(["threadless"])
    try daemon.expect("alone")
    try waitUntilIdle(daemon)
    daemon.send(SIGUSR1)
    try daemon.expect("background")
    try daemon.expect("save")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0), daemon.output.joined(separator: "\n"))
    XCTAssertTrue(daemon.output.contains { $0.hasPrefix("terminate") })
  }

  /// Nor can a body in the foreground: the hook that ends it must not wait for a thread in Dispatch, which would keep
  /// the only one that calls hooks.
  func testABodyInTheForegroundThatCannotEndCostsNoSave() throws {
    for idles in [false, true] {
      let daemons = try ["foreground", "draining", "restarting"].map {
        try started(["threadless", $0, idles ? "idle" : "blocked"])
      }
      for daemon in daemons { try daemon.expect("alone") }
      if idles { for daemon in daemons { try waitUntilIdle(daemon) } }
      for daemon in daemons { daemon.send(SIGTERM) }
      for daemon in daemons {
        try daemon.expect("save")
        XCTAssertEqual(try daemon.wait(), .status(124), daemon.output.joined(separator: "\n"))
        XCTAssertTrue(daemon.output.contains { $0.hasPrefix("terminate") })
      }
    }
  }

  /// What resumes a task of Swift's pool would wait in Dispatch for a thread: not the one that listens, and not one that
  /// calls hooks. It comes later, and in order.
  func testTasksOfThePoolKeepNobodyElseWaiting() throws {
    try skipUnlessLong()
    let others = try (["launching": 0, "occupied": 124] as [String: Int32]).map {
      (try started(["threadless", $0]), status: $1)
    }
    let posting = try started(["threadless", "posting"])
    func daemons() throws -> [ChildProcess] {
      let daemons = try ["sleeping", "receiving"].map { try started(["threadless", $0]) }
      for daemon in daemons {
        try daemon.expect("alone")
        try waitUntilIdle(daemon)
        daemon.send(SIGUSR1)
      }
      for daemon in daemons {
        try daemon.expect("lifecycle: Swift's thread pool is exhausted; a task is waiting")
      }
      return daemons
    }
    for daemon in try daemons() {
      daemon.send(SIGTERM)
      XCTAssertEqual(try daemon.wait(), .status(124), daemon.output.joined(separator: "\n"))
      XCTAssertTrue(daemon.output.contains { $0.hasPrefix("save: SIGTERM") })
    }
    for (daemon, status) in others {
      try daemon.expect("lifecycle: Swift's thread pool is exhausted; a task is waiting")
      daemon.send(SIGTERM)
      XCTAssertEqual(try daemon.wait(), .status(status), daemon.output.joined(separator: "\n"))
      XCTAssertTrue(daemon.output.contains { $0.hasPrefix("save: SIGTERM") })
      XCTAssertFalse(daemon.output.contains("began"))
    }
    try waitUntilIdle(posting)
    posting.send(SIGUSR1)
    try posting.expect("answered")
    posting.send(SIGTERM)
    XCTAssertEqual(try posting.wait(), .status(0), posting.output.joined(separator: "\n"))
    for (daemon, line) in zip(try daemons(), ["tick", "received"]) {
      daemon.send(SIGUSR2)
      try daemon.expect("with others")
      try daemon.expect(line)
      daemon.send(SIGTERM)
      XCTAssertEqual(try daemon.wait(), .status(0), daemon.output.joined(separator: "\n"))
    }
  }

  /// The hook holds one of the three threads: what is left keeps the deadlines, saves, and ends the process, also where it
  /// goes on after `run`.
  func testAHookThatHangsIsGivenUpInTimeAndCostsNoSave() throws {
    try skipUnlessLong()
    for after in [[], ["goes-on"]] {
      let daemon = try started(["threadless", "hang"] + after)
      try daemon.expect("alone")
      try waitUntilIdle(daemon)
      daemon.send(SIGTERM)
      try daemon.expect("hanging")
      try daemon.expect("save: SIGTERM")
      let exit = try daemon.wait()
      XCTAssertEqual(exit, .status(124), daemon.output.joined(separator: "\n"))
      XCTAssertTrue(daemon.output.contains { $0.contains("HangingObserver") })
    }
  }
}
