// SPDX-License-Identifier: Apache-2.0
import Glibc
import TestLimits
import TestSupport
import XCTest

/// Somebody queues signals in another's name.
final class ForgedSenderTests: XCTestCase {
  func testAQueuedSignalNamesNobodyAsItsSender() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["log"])
    try daemon.expect("foreground")
    func cause(_ signal: Int32, _ code: Int32, _ pid: pid_t, _ name: String) throws -> String {
      XCTAssertEqual(forge_signal(daemon.pid, signal, code, pid, 0), 0)
      return try daemon.expect(name)
    }
    let (queue, timer, own) = (Int32(-1), Int32(-2), Int32(-1000))  // SI_QUEUE, SI_TIMER, nobody's
    XCTAssertEqual(
      try cause(SIGUSR1, queue, 1, "background"), "background: SIGUSR1 queued, claims pid 1 uid 0")
    XCTAssertEqual(try cause(SIGUSR2, timer, 1, "foreground"), "foreground: SIGUSR2 queued")
    XCTAssertEqual(
      try cause(SIGHUP, own, 1, "reload"), "reload: SIGHUP queued, claims pid 1 uid 0")
    XCTAssertEqual(
      try cause(SIGUSR1, queue, -1, "background"), "background: SIGUSR1 queued, claims uid 0")
    XCTAssertEqual(forge_signal(daemon.pid, SIGUSR2, 0x80, 0, 0), EPERM, "SI_KERNEL")
    XCTAssertEqual(forge_signal(daemon.pid, SIGUSR2, 0, 1, 0), EPERM, "SI_USER")
    daemon.send(SIGUSR2)
    XCTAssertEqual(
      try daemon.expect("foreground"),
      "foreground: SIGUSR2 from pid \(getpid()) uid \(getuid())")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }
}
