import Glibc
import TestLimits
import TestSupport
import XCTest

/// A daemon that may not have one descriptor more.
final class DescriptorLimitTests: XCTestCase {
  func testPauseAndStopNeedNoNewDescriptor() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["log"])
    try daemon.expect("foreground")
    XCTAssertEqual(limits_set_soft(daemon.pid, Int32(RLIMIT_NOFILE.rawValue), 0), 0)
    daemon.send(SIGUSR1)
    try daemon.expect("save")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }
}
