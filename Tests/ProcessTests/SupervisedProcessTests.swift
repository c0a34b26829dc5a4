// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Glibc
import TestSupport
import XCTest

/// A real process that tells a fake service manager how it is: what needs no systemd to be seen.
final class SupervisedProcessTests: XCTestCase {
  /// The ping that comes at once after a stall does not wait for the checks: it comes although the check
  /// that follows it fails, since all was well before.
  func testAStallFromOutsideIsForgivenAtOnce() throws {
    try skipUnlessLong()
    let manager = try FakeServiceManager()
    let sick = "/tmp/sick-\(getpid())"
    defer { unlink(sick) }
    let daemon = try ChildProcess(
      built("ProbeService"), ["lifecycle", "--sick=\(sick)"],
      environment: manager.environment.merging(["WATCHDOG_USEC": "2000000"]) { $1 })
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
}
