// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import XCTest

/// The async server as a process.
final class ServiceProcessTests: XCTestCase {
  private func started(_ limit: String...) throws -> (daemon: ChildProcess, address: String) {
    let daemon = try ChildProcess(built("clockd"), ["0"] + limit, stderrToStdout: true)
    let line = try daemon.expect("clockd: serving ")
    return (daemon, String(line.split(separator: " ")[2]))
  }

  /// A stop does not wait for who is idle, and an answer under way is sent before the end.
  func testAStopAnswersWhoIsBusy() throws {
    let (daemon, address) = try started()
    let (idle, busy) = try idleAndBusy(daemon, address, "wait 1\ntime\n")
    daemon.send(SIGTERM)
    XCTAssertTrue(idle.hearsTheEnd)
    XCTAssertTrue(busy.hears("waited 1 s\n") && busy.hearsTheEnd)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  func testAStopsLimitCutsAndNames() throws {
    let (daemon, address) = try started("1")
    let (idle, busy) = try idleAndBusy(daemon, address, "wait 60\n")
    daemon.send(SIGTERM)
    XCTAssertTrue(idle.hearsTheEnd)
    XCTAssertTrue(busy.hearsTheEnd)
    XCTAssertEqual(try daemon.wait(), .status(124))
    XCTAssertTrue(daemon.output.contains { $0.contains("clients") && $0.contains("timed out") })
  }

  /// A client that has its answer, and one whose first line is being answered.
  private func idleAndBusy(
    _ daemon: ChildProcess, _ address: String, _ lines: String
  ) throws -> (idle: Peer, busy: Peer) {
    let (idle, busy) = (try Peer(address), try Peer(address))
    busy.send("wait 0\n" + lines)
    XCTAssertTrue(busy.hears("waited 0 s\n"))
    idle.send("wait 0\n")
    XCTAssertTrue(idle.hears("waited 0 s\n"))
    // Nothing else shows that it is being answered: then all threads sleep.
    try eventually("it has nothing to run") { hasNothingToRun(daemon.pid) }
    return (idle, busy)
  }

  private func hasNothingToRun(_ pid: pid_t) -> Bool {
    let tasks = "/proc/\(pid)/task"
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
    return threads.allSatisfy { thread in
      let status = try? String(contentsOfFile: "\(tasks)/\(thread)/stat", encoding: .utf8)
      return status?.contains(") S ") == true
    }
  }

  /// Who is served is served on, and who comes waits until one leaves.
  func testWithoutDescriptorsItWaitsForSome() throws {
    let daemon = try ChildProcess(
      "/bin/sh", ["-c", "ulimit -n 64; exec \"$0\" 0", built("clockd")], stderrToStdout: true)
    let address = String(try daemon.expect("clockd: serving ").split(separator: " ")[2])
    let first = try Peer(address)
    var others = try (0..<100).map { _ in try Peer(address) }
    try daemon.expect("clockd: Could not accept a client: Too many open files.")
    first.send("wait 0\n")
    XCTAssertTrue(first.hears("waited 0 s\n"))
    let last = others.removeLast()
    last.send("wait 0\n")
    others = []
    XCTAssertTrue(last.hears("waited 0 s\n"))
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }
}
