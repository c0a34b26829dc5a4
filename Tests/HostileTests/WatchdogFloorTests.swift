// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Glibc
import TestSupport
import XCTest

/// A watchdog's period that no daemon could keep to.
final class WatchdogFloorTests: XCTestCase {
  func testAPeriodThatIsTooShortIsSaidAndNotKeptTo() throws {
    let manager = try FakeServiceManager()
    let daemon = try ChildProcess(
      built("ProbeDaemon"), ["log"],
      environment: manager.environment.merging(["WATCHDOG_USEC": "1"]) { $1 },
      stderrToStdout: true)
    try daemon.line { $0.contains("(WATCHDOG_USEC, WatchdogSec=) is ") }
    _ = try manager.next(containing: "WATCHDOG", timeout: .seconds(30))
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }
}
