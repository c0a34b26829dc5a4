// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Glibc
import TestSupport
import XCTest

/// Real processes that tell a fake service manager how they are: what needs no systemd to be seen.
final class SupervisedProcessTests: XCTestCase {
  /// A daemon under `manager`, ready; with a watchdog period in seconds.
  private func started(
    _ arguments: [String], under manager: FakeServiceManager, watchdog: Int? = nil
  ) throws -> ChildProcess {
    var environment = manager.environment
    if let watchdog { environment["WATCHDOG_USEC"] = "\(watchdog * 1_000_000)" }
    let daemon = try ChildProcess(
      built("ProbeService"), ["lifecycle"] + arguments, environment: environment)
    _ = try manager.next(containing: "READY")
    return daemon
  }

  func testPollerdKeepsToTheProtocol() throws {
    let manager = try FakeServiceManager()
    let folder = "/tmp/pollerd-supervised-\(getpid())"
    defer { system("rm -rf \(folder)") }
    let pollerd = try ChildProcess(
      built("pollerd"), ["--state", folder], environment: manager.environment)
    _ = try manager.next(containing: "READY")
    for _ in 0..<20 {
      manager.willRequestReload()
      pollerd.send(SIGHUP)
      _ = try manager.next { $0["READY"] == "1" }
    }
    pollerd.send(SIGTERM)
    XCTAssertEqual(try pollerd.wait(), .status(0))
    XCTAssertEqual(manager.violations, [])
    XCTAssertEqual(manager.service.reloadsEnded, 20)
  }

  /// The ping that comes at once after a stall does not wait for the checks: it comes although the check
  /// that follows it fails, since all was well before.
  func testAStallFromOutsideIsForgivenAtOnce() throws {
    try skipUnlessLong()
    let manager = try FakeServiceManager()
    let sick = "/tmp/sick-\(getpid())"
    defer { unlink(sick) }
    let daemon = try started(["--sick=\(sick)"], under: manager, watchdog: 2)
    _ = try manager.next(containing: "WATCHDOG")
    daemon.send(SIGSTOP)
    close(open(sick, O_CREAT | O_WRONLY, 0o600))
    let pings = manager.service.watchdogPings
    usleep(2_500_000)  // the stall itself, and not a wait: longer than the period
    daemon.send(SIGCONT)
    let status = try manager.next { $0["STATUS"]?.contains("no watchdog ping") == true }
    XCTAssertTrue(status["STATUS"]?.contains("not well") == true)
    XCTAssertEqual(manager.service.watchdogPings, pings + 1, "forgiven once, and then asked")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  func testAFullManagerLosesNothing() throws {
    // Nobody reads: the queue of a datagram socket has room for a few messages only.
    let path = "/tmp/full-manager-\(getpid())"
    defer { unlink(path) }
    let socket = try FullSocket(path)
    let daemon = try ChildProcess(
      built("ProbeService"), ["lifecycle"], environment: ["NOTIFY_SOCKET": path])
    try daemon.expect("foreground done")
    for _ in 0..<40 {
      daemon.send(SIGHUP)
      try daemon.expect("reload done")
    }
    daemon.send(SIGUSR1)
    try daemon.expect("save done")
    // Everything comes, in order, once there is room.
    var messages: [String] = []
    while !(messages.last?.contains("background, operator,") ?? false) {
      messages.append(try socket.next())
    }
    XCTAssertEqual(messages.filter { $0.contains("RELOADING=1") }.count, 40)
    XCTAssertEqual(messages.filter { $0.contains("READY=1") }.count, 41)
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }
}

/// A notify socket that is read when the test says so.
private final class FullSocket {
  private let number: Int32

  init(_ path: String) throws {
    number = try unixSocket(SOCK_DGRAM, at: path, bind)
  }

  deinit { close(number) }

  func next() throws -> String {
    var ready = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
    guard poll(&ready, 1, 20_000) == 1 else { throw TestFailure("no message within 20 s") }
    var buffer = [UInt8](repeating: 0, count: 8192)
    let count = read(number, &buffer, buffer.count)
    return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
  }
}
