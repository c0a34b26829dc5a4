// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleState
import Glibc
import TestSupport
import XCTest

/// A daemon that has forked a child without exec, and dies.
final class ForkedLockTests: XCTestCase {
  func testTheStateIsFreeAlthoughAForkedChildLives() throws {
    let folder = try Folder()
    let daemon = try ChildProcess(built("ProbeDaemon"), ["state", folder.path, "fork"])
    let line = try daemon.expect("child ")
    let child = try XCTUnwrap(pid_t(line.dropFirst(6)))
    defer { kill(child, SIGKILL) }
    XCTAssertThrowsError(try StateStore(directory: folder.path)) { error in
      XCTAssertEqual(error as? StateError, .inUse(folder.path, pid: daemon.pid))
    }
    daemon.send(SIGKILL)
    XCTAssertEqual(try daemon.wait(), .signal(SIGKILL))
    XCTAssertEqual(kill(child, 0), 0, "the child must outlive it")
    XCTAssertNoThrow(try StateStore(directory: folder.path))
  }
}
