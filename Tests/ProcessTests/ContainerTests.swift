// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Foundation
import TestSupport
import XCTest

@testable import DaemonLifecycle

/// A daemon as process 1, without an init: what a container runs.
final class ContainerTests: XCTestCase {
  private var folder: Folder?
  private var directory: String { folder?.path ?? "" }
  private var ready: String { directory + "/ready" }
  private var isReady: Bool { access(ready, F_OK) == 0 }

  override func setUpWithError() throws { folder = try Folder() }
  override func tearDown() { folder = nil }

  private func pollerd(
    _ arguments: [String] = [], environment: [String: String] = [:], until first: String = "poll "
  ) throws -> Container {
    try Container(
      "pollerd",
      ["--state", directory + "/state", "--ready-file", ready, "--interval", "0.01"] + arguments,
      environment: environment, until: first, stderrToStdout: true)
  }

  private func lastPoll(_ container: Container) -> Int? {
    container.process.output.last { $0.hasPrefix("poll ") }.flatMap {
      Int($0.split(separator: " ")[1])
    }
  }

  /// The number from which the next one goes on.
  private func savedCount() throws -> Int {
    let next = try pollerd()
    let first = next.process.output.first { $0.hasPrefix("poll ") }!
    next.send(SIGTERM)
    XCTAssertEqual(try next.process.wait(), .status(0))
    return Int(first.split(separator: " ")[1])! - 1
  }

  // MARK: Signals

  func testEverySignalActs() throws {
    let container = try pollerd()
    XCTAssertEqual(container.innerPID, 1)
    // Its rounds begin in a hook, which is a little before all hooks have ended.
    try eventually("it is ready") { isReady }
    container.send(SIGUSR1)
    let pause = try container.process.expect("lifecycle: Entered the background in ")
    XCTAssertTrue(pause.contains("(SIGUSR1 from outside of the container,"), pause)
    XCTAssertFalse(isReady)
    container.send(SIGUSR2)
    try container.process.expect("lifecycle: Entered the foreground in ")
    try eventually("it is ready again") { isReady }
    container.send(SIGHUP)
    try container.process.expect("reload: nothing to reload without --config")
    XCTAssertTrue(isReady)
    // What nobody handles would end any other process.
    container.send(SIGALRM)
    try container.process.expect("poll ")
    container.send(SIGINT)
    XCTAssertEqual(try container.process.wait(), .status(0))
    XCTAssertFalse(isReady)
    // The last that it does; then it says who took how long.
    let before = container.process.output.prefix { !$0.hasPrefix("lifecycle: terminate (SIGINT") }
    XCTAssertEqual(before.last, "saved: count \(lastPoll(container) ?? 0)")
    XCTAssertLessThan(before.count, container.process.output.count)
    XCTAssertEqual(try savedCount(), lastPoll(container))
  }

  /// `kill 1` in a `docker exec`, or in a preStop hook.
  func testASignalFromInsideActs() throws {
    let container = try pollerd()
    try container.run("kill -USR1 1")
    let line = try container.process.expect("lifecycle: Entered the background in ")
    XCTAssertTrue(line.contains("(SIGUSR1 from pid "), line)
    XCTAssertFalse(line.contains("(SIGUSR1 from pid 0 "), line)
    container.send(SIGTERM)
    XCTAssertEqual(try container.process.wait(), .status(0))
  }

  /// `docker stop`: SIGTERM, and SIGKILL after the grace period. Nobody has to send that.
  func testAStopEndsWithinTheGracePeriod() throws {
    let container = try pollerd(
      ["--drain", "0.3"], environment: ["TERMINATION_GRACE_PERIOD_SECONDS": "10"])
    // It polls a little before that; a launch that is stopped has nothing to drain.
    try eventually("it is ready") { isReady }
    let began = now()
    container.send(SIGTERM)
    try eventually("it is not ready") { !isReady }
    // It still serves, and saves when that is over.
    try container.process.expect("saved: ")
    XCTAssertGreaterThanOrEqual(now() - began, 0.3)
    XCTAssertEqual(try container.process.wait(within: 9), .status(0))
    XCTAssertEqual(try savedCount(), lastPoll(container))
  }

  // MARK: What does not end by itself

  /// A signal raised anew with its default disposition would not end process 1.
  func testAThirdSignalEndsIt() throws {
    let container = try Container("ProbeDaemon", ["hang", "blocking", "slow"], until: "started")
    container.send(SIGTERM)
    try container.process.expect("hanging")
    container.send(SIGINT)
    container.send(SIGTERM)
    container.send(SIGINT)
    let exit = try container.process.wait(within: 15)
    XCTAssertTrue([.status(128 + SIGTERM), .status(128 + SIGINT)].contains(exit), "\(exit)")
  }

  /// `docker stop` has no marker but this, and ten seconds.
  func testAHangingPauseOfProcessOneDoesNotCostTheSave() throws {
    let container = try Container(
      "ProbeDaemon", ["hosted"], until: "started", stderrToStdout: true)
    let killed = now() + HostingPlatform.container("").gracePeriod / .seconds(1)
    container.send(SIGTERM)
    try container.process.expect("saved", within: killed - now())
    XCTAssertEqual(try container.process.wait(within: killed - now()), .status(124))
    XCTAssertTrue(
      container.process.output.contains {
        $0.contains("Running on a container engine (the daemon is process 1)")
      })
  }

  /// `podman run --sdnotify=container` passes the socket of the manager outside on, and kills after its own ten seconds.
  func testAManagersSocketChangesNoContainersLimit() throws {
    let manager = try FakeServiceManager()
    let container = try Container(
      "ProbeDaemon", ["hosted"], environment: manager.environment, until: "started",
      stderrToStdout: true)
    let killed = now() + HostingPlatform.container("").gracePeriod / .seconds(1)
    container.send(SIGTERM)
    try container.process.expect("saved", within: killed - now())
    XCTAssertEqual(try container.process.wait(within: killed - now()), .status(124))
    XCTAssertTrue(
      container.process.output.contains { $0.contains(" in ") && $0.contains(" of 9 s, ") })
  }

  /// The daemon can't help it, and says so.
  func testAShellAsProcessOneIsNamed() throws {
    for (script, isNamed) in [("", true), ("trap : TERM;", false)] {
      let shell = try ChildProcess(
        "/usr/bin/env",
        Container.command() + ["sh", "-c", "\(script) \(built("ProbeDaemon")) log; true"],
        stderrToStdout: true)
      try shell.expect("foreground")
      let daemon = try XCTUnwrap(
        Container.children(of: shell.pid).first.flatMap { Container.children(of: $0).first })
      kill(daemon, SIGTERM)
      XCTAssertEqual(try shell.wait(), .status(0))
      let line = "lifecycle: Process 1 is sh, which passes no SIGTERM on: "
      XCTAssertEqual(shell.output.contains { $0.hasPrefix(line) }, isNamed, "\(shell.output)")
    }
  }

  /// What it leaves behind goes before the next one's launch.
  func testAfterSIGKILLTheNextOneBeginsNotReady() throws {
    let killed = try pollerd()
    try eventually("it is ready") { isReady }
    killed.send(SIGKILL)
    _ = try killed.process.wait()
    XCTAssertTrue(isReady, "nobody was there to remove it")
    let before = try String(contentsOfFile: ready, encoding: .utf8)
    let next = try Container(
      "ProbeDaemon", ["late-launch", ready], until: "launching", stderrToStdout: true)
    try next.process.expect("not ready")
    next.send(SIGTERM)
    XCTAssertEqual(try next.process.wait(), .status(0))
    XCTAssertTrue(before.hasPrefix("ready\npid 1\nsince "), before)
  }

  // MARK: Orphans

  /// The lifecycle waits for nobody's children: that would take their status from whoever has started them.
  func testTheLifecycleLeavesOrphansAlone() throws {
    let container = try Container("ProbeDaemon", ["log"], until: "foreground")
    let orphan = try container.makeOrphan()
    kill(orphan, SIGKILL)
    try eventually("the orphan is a zombie") { Container.isZombie(orphan) }
    container.send(SIGHUP)
    try container.process.expect("reload: SIGHUP")
    XCTAssertEqual(container.children, [orphan])
    container.send(SIGTERM)
    XCTAssertEqual(try container.process.wait(), .status(0))
  }

  /// One that starts no children can have the kernel see to orphans.
  func testPollerdLeavesNoZombies() throws {
    let container = try pollerd()
    for _ in 1...3 {
      let orphan = try container.makeOrphan()
      kill(orphan, SIGKILL)
      try eventually("the orphan is gone") { container.children == [] }
    }
    // One that lives on does not keep the container.
    _ = try container.makeOrphan()
    container.send(SIGTERM)
    XCTAssertEqual(try container.process.wait(), .status(0))
  }
}
