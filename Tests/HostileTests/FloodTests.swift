// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycle
import DaemonLifecycleState
import DaemonLifecycleTesting
import DaemonSystemd
import TestLimits
import TestSupport
import XCTest

private typealias ChildProcess = TestSupport.ChildProcess

/// A daemon whose clients have taken every descriptor that it may have.
final class FloodTests: XCTestCase {
  private var own: Folder?
  private var folder: String { own?.path ?? "" }

  override func setUpWithError() throws { own = try Folder() }
  override func tearDown() { own = nil }

  /// A daemon in the foreground that can be flooded with few descriptors.
  private func start(
    _ manager: FakeServiceManager? = nil, _ options: [String], watchdog: Bool = false
  ) throws -> ChildProcess {
    var environment = manager?.environment ?? [:]
    if watchdog { environment["WATCHDOG_USEC"] = "1000000" }
    let daemon = try ChildProcess(
      built("ProbeService"), ["flood", "--state=\(folder)"] + options, environment: environment)
    try daemon.expect("foreground")
    XCTAssertEqual(limits_set_soft(daemon.pid, Int32(RLIMIT_NOFILE.rawValue), 80), 0)
    return daemon
  }

  private func flood(_ daemon: ChildProcess) throws {
    daemon.send(firstRealTimeSignal + 1)
    try daemon.expect("flooded")
  }

  private let firstRealTimeSignal = clinux_sigrtmin()

  private func state() throws -> String? {
    try StateStore(directory: folder).load().map { String(decoding: $0.bytes, as: UTF8.self) }
  }

  /// Waits until the file is there, or is not.
  private func expect(
    _ name: String, exists: Bool, file: StaticString = #filePath, line: UInt = #line
  ) throws {
    try eventually("\(name) is \(exists ? "" : "not ")there", file: file, line: line) {
      (access("\(folder)/\(name)", F_OK) == 0) == exists
    }
  }

  // MARK: systemd

  func testAReloadIsAnswered() throws {
    let manager = try FakeServiceManager()
    let daemon = try start(manager, [])
    _ = try manager.next(containing: "READY", timeout: .seconds(20))
    try flood(daemon)
    manager.willRequestReload()
    daemon.send(SIGHUP)
    _ = try manager.next(containing: "RELOADING", timeout: .seconds(20))
    _ = try manager.next(containing: "READY", timeout: .seconds(20))
    daemon.send(SIGTERM)
    _ = try manager.next(containing: "STOPPING", timeout: .seconds(20))
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertEqual(manager.violations, [])
  }

  /// Looked at while it stops, when Swift's pool is not asked for its health: see `Clients` of the probe.
  func testPingsGoOnAndTheLivenessFileIsTouched() throws {
    let manager = try FakeServiceManager()
    let daemon = try start(
      manager, ["--alive=\(folder)/alive", "--gate=\(folder)/gate"], watchdog: true)
    try expect("alive", exists: true)
    try flood(daemon)
    daemon.send(SIGTERM)
    try daemon.expect("terminating")
    let before = manager.service.watchdogPings
    age("\(folder)/alive")
    for _ in 0..<3 { _ = try manager.next(containing: "WATCHDOG", timeout: .seconds(20)) }
    XCTAssertGreaterThan(manager.service.watchdogPings, before)
    try eventually("the liveness file is touched") { !isOld("\(folder)/alive") }
    close(clinux_open_at(AT_FDCWD, "\(folder)/gate", O_RDONLY | O_CREAT, 0o600))
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertEqual(manager.violations, [])
  }

  /// What a daemon does at its end to be restarted: bytes in a file of memory, and a barrier, which needs a pipe.
  func testBytesArePreservedAndWaitedFor() throws {
    let manager = try FakeServiceManager()
    let daemon = try start(manager, ["--preserve", "--greedy"])
    try flood(daemon)
    daemon.send(SIGTERM)
    try daemon.expect("preserved")
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertEqual(manager.service.barriers, 1)
    let kept = try manager.storedDuplicates().takeFirst { $0.name == "state" }?.memoryBytes()
    XCTAssertEqual(kept, Array("kept".utf8))
    XCTAssertEqual(manager.violations, [])
  }

  // MARK: The state

  /// Whoever takes each free descriptor at once does not get the one of the save.
  func testTheLastStateIsSaved() throws {
    let daemon = try start(nil, ["--greedy"])
    try flood(daemon)
    daemon.send(SIGTERM)
    try daemon.expect("saved 1")
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertEqual(try state(), "1")
  }

  // MARK: Probes

  func testTheReadinessFileComesBackAfterTheFlood() throws {
    let daemon = try start(nil, ["--ready=\(folder)/ready", "--greedy"])
    try expect("ready", exists: true)
    try flood(daemon)
    daemon.send(SIGUSR1)
    try daemon.expect("background")
    try expect("ready", exists: false)
    daemon.send(SIGUSR2)
    try daemon.expect("foreground")
    // What becomes free is taken by others, so it may have to wait.
    daemon.send(firstRealTimeSignal + 2)
    try daemon.expect("ebbed")
    try expect("ready", exists: true)
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    try expect("ready", exists: false)
  }
}
