import CLinux
import DaemonLifecycle
import DaemonLifecycleTesting
import Systemd
import TestLimits
import TestSupport
import XCTest

private typealias ChildProcess = TestSupport.ChildProcess

/// A daemon whose clients have taken every descriptor that it may have.
final class FloodTests: XCTestCase {
  private var folder = ""

  override func setUp() {
    var template = Array("/tmp/lifecycle-flood-XXXXXX".utf8CString)
    mkdtemp(&template)
    folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  override func tearDown() {
    for name in ["state.0", "state.1", "state.lock", "run/ready", "ready", "alive"] {
      unlink("\(folder)/\(name)")
    }
    rmdir("\(folder)/run")
    rmdir(folder)
  }

  /// A daemon in the foreground that can be flooded with few descriptors.
  private func start(
    _ manager: FakeServiceManager? = nil, _ options: [String]
  ) throws -> ChildProcess {
    var environment = manager?.environment ?? [:]
    if manager != nil { environment["WATCHDOG_USEC"] = "200000" }
    let daemon = try ChildProcess(
      built("ProbeService"), ["flood", "--state=\(folder)"] + options, environment: environment)
    try daemon.expect("foreground")
    XCTAssertEqual(limits_set_soft(daemon.pid, Int32(RLIMIT_NOFILE.rawValue), 80), 0)
    return daemon
  }

  private func flood(_ daemon: ChildProcess) throws {
    daemon.send(SIGRTMIN() + 1)
    try daemon.expect("flooded")
  }

  private func SIGRTMIN() -> Int32 { clinux_sigrtmin() }

  private func state() throws -> String? {
    try StateStore(directory: folder).load().map { String(decoding: $0.bytes, as: UTF8.self) }
  }

  /// Waits until the file is there, or is not.
  private func expect(
    _ name: String, exists: Bool, file: StaticString = #filePath, line: UInt = #line
  ) {
    let deadline = now() + 20
    while (access("\(folder)/\(name)", F_OK) == 0) != exists {
      guard now() < deadline else {
        return XCTFail("\(name) is \(exists ? "not " : "")there", file: file, line: line)
      }
      usleep(5000)
    }
  }

  // MARK: systemd

  func testPingsGoOnAndAReloadIsAnswered() throws {
    let manager = try FakeServiceManager()
    let daemon = try start(manager, [])
    _ = try manager.next(containing: "READY", timeout: .seconds(20))
    try flood(daemon)
    let before = manager.service.watchdogPings
    manager.willRequestReload()
    daemon.send(SIGHUP)
    _ = try manager.next(containing: "RELOADING", timeout: .seconds(20))
    _ = try manager.next(containing: "READY", timeout: .seconds(20))
    for _ in 0..<3 { _ = try manager.next(containing: "WATCHDOG", timeout: .seconds(20)) }
    XCTAssertGreaterThan(manager.service.watchdogPings, before)
    daemon.send(SIGTERM)
    _ = try manager.next(containing: "STOPPING", timeout: .seconds(20))
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
    let kept = try manager.storedDuplicates().take(named: "state")?.memoryBytes()
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

  func testEachOfManyStatesIsSaved() throws {
    let daemon = try start(nil, [])
    try flood(daemon)
    for number in stride(from: 1, to: 20, by: 1) {
      daemon.send(number % 2 == 1 ? SIGUSR1 : SIGUSR2)
      try daemon.expect(number % 2 == 1 ? "saved \((number + 1) / 2)" : "foreground")
    }
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertEqual(try state(), "11")
  }

  // MARK: Probes

  func testTheLivenessFileIsTouched() throws {
    let daemon = try start(nil, ["--alive=\(folder)/alive"])
    expect("alive", exists: true)
    try flood(daemon)
    var status = stat()
    stat("\(folder)/alive", &status)
    var times = [status.st_mtim, status.st_mtim]
    for index in times.indices { times[index].tv_sec -= 86_400 }
    utimensat(AT_FDCWD, "\(folder)/alive", &times, 0)
    let deadline = now() + 20
    repeat {
      stat("\(folder)/alive", &status)
    } while status.st_mtim.tv_sec < time(nil) - 3600
      && now() < deadline && usleep(5000) == 0
    XCTAssertGreaterThan(status.st_mtim.tv_sec, time(nil) - 3600)
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  func testTheReadinessFileComesBackInTheFloodOrAfterIt() throws {
    let daemon = try start(nil, ["--ready=\(folder)/ready", "--greedy"])
    expect("ready", exists: true)
    try flood(daemon)
    // The first has a file in reserve. What becomes free is taken by others, so the second waits.
    for _ in 1...2 {
      daemon.send(SIGUSR1)
      expect("ready", exists: false)
      daemon.send(SIGUSR2)
      try daemon.expect("foreground")
    }
    daemon.send(SIGRTMIN() + 2)
    try daemon.expect("ebbed")
    expect("ready", exists: true)
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    expect("ready", exists: false)
  }

  /// Failing once is not failing for good.
  func testTheReadinessFileAppearsWhenItsDirectoryDoes() throws {
    let daemon = try start(nil, ["--ready=\(folder)/run/ready"])
    mkdir("\(folder)/run", 0o700)
    expect("run/ready", exists: true)
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    expect("run/ready", exists: false)
  }
}
