// SPDX-License-Identifier: Apache-2.0
import Glibc
import TestLimits
import TestSupport
import XCTest

/// A daemon whose files may not grow (RLIMIT_FSIZE): the kernel would end it with SIGXFSZ.
final class FileSizeLimitTests: XCTestCase {
  func testASaveAndItsLogLineFailAndTheDaemonGoesOn() throws {
    let folder = try Folder()
    let log = "\(folder.path)/log"
    close(creat(log, 0o600))
    let daemon = try ChildProcess(
      built("ProbeDaemon"), ["state", folder.path], stderr: log)
    try daemon.expect("foreground")
    daemon.send(SIGUSR1)
    try daemon.expect("saved")
    let before = try folder.text("log")
    XCTAssertEqual(limits_set_soft(daemon.pid, Int32(RLIMIT_FSIZE.rawValue), 0), 0)
    daemon.send(SIGUSR2)
    try daemon.expect("foreground")
    daemon.send(SIGUSR1)
    XCTAssertEqual(
      try daemon.expect("not saved"),
      "not saved: Could not save the state in \(folder.path): File too large."
        + " Raise the limit on a file's size (LimitFSIZE=), and save again; what was saved before is still there."
    )
    daemon.send(SIGUSR2)
    try daemon.expect("foreground")
    // The line for the log, which is full, was dropped.
    XCTAssertEqual(try folder.text("log"), before)
    XCTAssertEqual(
      limits_set_soft(daemon.pid, Int32(RLIMIT_FSIZE.rawValue), UInt64(UInt32.max)), 0)
    daemon.send(SIGUSR1)
    try daemon.expect("saved")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }
}
