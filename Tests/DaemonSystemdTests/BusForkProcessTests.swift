// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import TestSupport
import XCTest

/// A daemon that forks beside its connection to a bus. It is a process of its own, with one thread: a fork of a test's
/// process copies the locks that Swift's other threads hold, and the child waits for them for ever.
final class BusForkProcessTests: XCTestCase {
  /// The child does everything with its copy; the parent goes on undisturbed.
  func testTheChildIsRefusedAndTheParentGoesOn() throws {
    try XCTSkipUnless(BusTests.hasLibrary, "libsystemd.so.0 is not here")
    let peer = BusPeer()
    peer.answer = { _ in .reply([.variant(.uint64(5))]) }
    let daemon = try TestSupport.ChildProcess(built("ProbeService"), ["bus-fork", peer.address])
    let deadline = MonotonicTime.after(.seconds(60))
    var exit: TestSupport.ChildProcess.Exit?
    while exit == nil, MonotonicTime.now() < deadline {
      peer.step()
      exit = try? daemon.wait(within: 0.005)
    }
    XCTAssertEqual(exit, .status(0))
    XCTAssertEqual(daemon.output, ["child 0", "answered"])
  }
}
