// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleState
import Foundation
import TestSupport
import XCTest

/// A daemon that has forked a child without exec.
final class ForkedLockTests: XCTestCase {
  private func start(in folder: Folder) throws -> (ChildProcess, pid_t) {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["state", folder.path, "fork"])
    let line = try daemon.expect("child ")
    return (daemon, try XCTUnwrap(pid_t(line.dropFirst(6))))
  }

  private func opening(_ folder: Folder) -> StateError? {
    do throws(StateError) { _ = try StateStore(directory: folder.path) } catch { return error }
    return nil
  }

  func testTheEndOfTheChildUnlocksNothing() throws {
    let folder = try Folder()
    let (daemon, child) = try start(in: folder)
    kill(child, SIGKILL)
    // A zombie has closed its files.
    try eventually("the child is gone") {
      ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(child)/fd")) ?? []).isEmpty
    }
    XCTAssertEqual(opening(folder), .inUse(folder.path, pid: daemon.pid))
    daemon.send(SIGKILL)
    XCTAssertEqual(try daemon.wait(), .signal(SIGKILL))
    XCTAssertNil(opening(folder))
  }

  /// Nobody else changes the state as long as it lives, and it can't be lost.
  func testAChildThatOutlivesTheDaemonKeepsTheLock() throws {
    let folder = try Folder()
    let (daemon, child) = try start(in: folder)
    defer { kill(child, SIGKILL) }
    daemon.send(SIGKILL)
    XCTAssertEqual(try daemon.wait(), .signal(SIGKILL))
    XCTAssertEqual(opening(folder), .inUse(folder.path, pid: nil))
    kill(child, SIGKILL)
    try eventually { opening(folder) == nil }
  }
}
