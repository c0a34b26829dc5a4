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
    let folder = try Folder()
    let sick = folder.path("sick")
    let daemon = try ChildProcess(
      built("ProbeService"), ["lifecycle", "--sick=\(sick)"],
      environment: manager.environment.merging(["WATCHDOG_USEC": "2000000"]) { $1 })
    var pings = 0
    // Stopped right after a ping. On a busy machine there may have been another meanwhile, and a third under way.
    repeat {
      daemon.send(SIGCONT)
      _ = try manager.next(containing: "WATCHDOG")
      pings = manager.service.watchdogPings
      daemon.send(SIGSTOP)
      waitpid(daemon.pid, nil, WUNTRACED)
    } while manager.service.watchdogPings > pings
    try folder.write("", to: "sick")
    usleep(2_500_000)  // the stall itself, and not a wait: longer than the period
    daemon.send(SIGCONT)
    let status = try manager.next { $0["STATUS"]?.contains("not healthy") == true }
    XCTAssertTrue(status["STATUS"]?.contains("not well") == true)
    XCTAssertEqual(manager.service.watchdogPings, pings + 1, "forgiven once, and then asked")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }
}
