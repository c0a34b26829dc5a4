// SPDX-License-Identifier: Apache-2.0
import Glibc
import TestSupport
import XCTest

@testable import DaemonLifecycle

/// On each platform (usually on those that wait the least) a pause that hangs, SIGKILL when the platform's time is
/// over, and the state is there.
final class PlatformTests: XCTestCase {
  func testAHangingPauseDoesNotCostTheSave() throws {
    let shortest = HostingPlatform.all.filter { $0.gracePeriod <= .seconds(5) }
    let daemons = try (LongTests.areRequested ? HostingPlatform.all : shortest).map { platform in
      let daemon = try ChildProcess(
        built("ProbeDaemon"), ["hosted"], environment: [platform.marker: "x"],
        stderrToStdout: true)
      try daemon.expect("started")
      return (platform, daemon)
    }
    let began = now()
    for (_, daemon) in daemons { daemon.send(SIGTERM) }
    // Those with the least time first: the lines of the others wait for us.
    for (platform, daemon) in daemons.sorted(by: { $0.0.gracePeriod < $1.0.gracePeriod }) {
      let killed = began + platform.gracePeriod / .seconds(1)
      try daemon.expect("saved", within: killed - now())
      XCTAssertEqual(try daemon.wait(within: killed - now()), .status(124), platform.name)
      XCTAssertTrue(daemon.output.contains { $0.contains("Running on \(platform.name)") })
    }
  }
}
