// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Glibc
import TestSupport
import XCTest

/// A daemon whose program is setuid, started by somebody who has chosen its environment.
final class SecureExecutionTests: XCTestCase {
  func testASetuidDaemonDoesNotObeyTheEnvironment() throws {
    try XCTSkipUnless(geteuid() == 0, "Needs root, to make a program setuid.")
    try XCTSkipUnless(access("/usr/bin/setpriv", X_OK) == 0, "Needs setpriv(1).")
    let folder = try Folder()
    chmod(folder.path, 0o755)
    let program = "\(folder.path)/probe"
    system("install -m 4755 \(built("ProbeDaemon")) \(program)")
    let sysctl = "\(folder.path)/sysctl"
    XCTAssertEqual(symlink("/proc/sys/kernel/panic_on_oops", sysctl), 0)
    let manager = try FakeServiceManager()
    var environment = manager.environment
    environment["WATCHDOG_USEC"] = "1000000"
    environment["MEMORY_PRESSURE_WATCH"] = sysctl
    environment["MEMORY_PRESSURE_WRITE"] = "MAo="
    let daemon = try ChildProcess(
      "/usr/bin/setpriv", ["--reuid=65534", "--clear-groups", program, "log"],
      environment: environment, stderrToStdout: true)
    do { try daemon.expect("foreground") } catch {
      // The Swift runtime is found by LD_LIBRARY_PATH only, or the file system is mounted nosuid.
      throw XCTSkip("A setuid program does not start here: \(error)")
    }
    let users = try XCTUnwrap(processStatus("Uid", of: daemon.pid))
    try XCTSkipUnless(users.hasPrefix("65534\t0\t"), "No setuid here: \(users)")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertEqual(manager.messages.map(\.description), [])
    XCTAssertEqual(
      daemon.output.filter { $0.contains("The environment is not read") }.count, 1,
      "\(daemon.output)")
    XCTAssertEqual(daemon.output.filter { $0.contains("pressure") }, [])
  }
}
