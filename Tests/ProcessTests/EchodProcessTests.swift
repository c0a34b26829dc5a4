// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import XCTest

/// The example server as a process that listens itself, without systemd.
final class EchodProcessTests: XCTestCase {
  private func started(_ arguments: [String] = []) throws -> (daemon: ChildProcess, address: String)
  {
    let daemon = try ChildProcess(
      built("echod"), ["--listen", "127.0.0.1:0"] + arguments, stderrToStdout: true)
    let line = try daemon.expect("echod: serving ")
    return (daemon, String(line.split(separator: " ")[2].dropLast()))
  }

  private func end(_ daemon: ChildProcess) throws {
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  private func isThere(_ path: String) -> Bool { access(path, F_OK) == 0 }

  func testAPauseDrains() throws {
    let ready = NSTemporaryDirectory() + "echod-\(UUID().uuidString).ready"
    let (daemon, address) = try started(["--ready-file", ready])
    try eventually("it is ready") { isThere(ready) }
    let (idle, busy) = (try Peer(address), try Peer(address))
    idle.send("one\n")
    busy.send("two\nthr")
    XCTAssertTrue(idle.hears("one\n") && busy.hears("two\n"))
    daemon.send(SIGUSR1)
    try daemon.expect("echod: draining")
    XCTAssertFalse(isThere(ready))
    XCTAssertTrue(idle.hearsTheEnd)
    // Who comes now waits; who has half a line is served until it is whole.
    let late = try Peer(address)
    late.send("four\n")
    busy.send("ee\n")
    XCTAssertTrue(busy.hears("three\n") && busy.hearsTheEnd)
    daemon.send(SIGUSR2)
    XCTAssertTrue(late.hears("four\n"))
    try eventually("it is ready") { isThere(ready) }
    try end(daemon)
  }

  /// Half a line is no reason to wait.
  func testASignalAnswersAndEnds() throws {
    for signal in [SIGTERM, SIGINT] {
      let (daemon, address) = try started()
      let peers = try (0..<20).map { _ in try Peer(address) }
      for peer in peers { peer.send("one\ntwo\nhalf") }
      daemon.send(signal)
      for peer in peers {
        XCTAssertTrue(peer.hears("one\ntwo\n") && peer.hearsTheEnd)
        peer.endSending()
      }
      XCTAssertEqual(try daemon.wait(), .status(0))
    }
  }
}
