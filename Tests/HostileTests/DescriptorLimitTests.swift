// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Foundation
import TestLimits
import TestSupport
import XCTest

/// A daemon that may not have one descriptor more.
final class DescriptorLimitTests: XCTestCase {
  private func allowDescriptors(_ count: UInt64, _ daemon: ChildProcess) {
    XCTAssertEqual(limits_set_soft(daemon.pid, Int32(RLIMIT_NOFILE.rawValue), count), 0)
  }

  /// As where all numbers are taken.
  private func allowNoMoreDescriptors(_ daemon: ChildProcess) throws {
    let names = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(daemon.pid)/fd")
    let taken = Set(names.compactMap { UInt64($0) })
    allowDescriptors((0...).first { !taken.contains($0) }!, daemon)
  }

  /// Dispatch ends the process when it can't make a descriptor: it must have all of them before.
  func testNothingOfDispatchIsMadeLate() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["late-uses"])
    try daemon.expect("foreground")
    try allowNoMoreDescriptors(daemon)
    daemon.send(SIGUSR1)
    for use in ["task slept", "suspending clock slept", "main actor", "pool", "lifecycle clock"] {
      try daemon.expect(use)
    }
    try daemon.expect("save")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  /// Its checks go over Swift's pool and the main actor.
  func testAWatchdogSurvivesARoundWithoutDescriptors() throws {
    let manager = try FakeServiceManager()
    var environment = manager.environment
    environment["WATCHDOG_USEC"] = "1000000"
    let daemon = try ChildProcess(
      built("ProbeService"), ["lifecycle"], environment: environment, stderrToStdout: true)
    _ = try manager.next(containing: "READY")
    try allowNoMoreDescriptors(daemon)
    usleep(1_500_000)  // three rounds, and not a wait
    allowDescriptors(1024, daemon)
    let pings = manager.service.watchdogPings
    while manager.service.watchdogPings == pings { _ = try manager.next(containing: "WATCHDOG") }
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0), daemon.output.joined(separator: "\n"))
  }
}
