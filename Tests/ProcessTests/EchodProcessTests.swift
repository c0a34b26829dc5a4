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

  func testAnswersLinesInAnyPieces() throws {
    let (daemon, address) = try started()
    let peer = try Peer(address)
    peer.send("o")
    peer.send("ne\ntwo\nth")
    XCTAssertTrue(peer.hears("one\ntwo\n"))
    peer.send("ree\n")
    XCTAssertTrue(peer.hears("three\n"))
    try end(daemon)
    XCTAssertTrue(peer.hearsTheEnd)
  }

  func testAHalfClosedPeerHearsAllAnswers() throws {
    let (daemon, address) = try started()
    let peer = try Peer(address)
    peer.send("one\ntwo")
    peer.endSending()
    XCTAssertTrue(peer.hears("one\ntwo\n") && peer.hearsTheEnd)
    try end(daemon)
  }

  func testALineThatIsTooLongIsRefused() throws {
    let (daemon, address) = try started()
    let peer = try Peer(address)
    peer.send("one\n")
    peer.send([UInt8](repeating: UInt8(ascii: "x"), count: 200_000))
    XCTAssertTrue(peer.hears("one\nerror: a line has at most 65536 bytes\n") && peer.hearsTheEnd)
    try end(daemon)
  }

  /// It takes so much, and no memory for more; others do not notice.
  func testASlowReaderIsNotReadFrom() throws {
    let (daemon, address) = try started()
    let (slow, other) = (try Peer(address), try Peer(address))
    let line = [UInt8](repeating: UInt8(ascii: "x"), count: 999) + [UInt8(ascii: "\n")]
    let sent = slow.sendUntilFull(line)
    XCTAssertLessThan(sent, 64 << 20)
    other.send("one\n")
    XCTAssertTrue(other.hears("one\n"))
    slow.endSending()
    XCTAssertEqual(slow.receive(sent + 1000).utf8.count, sent + (sent % 1000 == 0 ? 0 : 1))
    try end(daemon)
  }

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

  func testAReloadChangesThePrefix() throws {
    let path = NSTemporaryDirectory() + "echod-\(UUID().uuidString).conf"
    try "".write(toFile: path, atomically: true, encoding: .utf8)
    defer { unlink(path) }
    let (daemon, address) = try started(["--config", path])
    let peer = try Peer(address)
    peer.send("one\nhal")
    XCTAssertTrue(peer.hears("one\n"))
    try "prefix = > ".write(toFile: path, atomically: true, encoding: .utf8)
    daemon.send(SIGHUP)
    // When it is in use is not said without systemd: so until an answer has it.
    var answer = ""
    for _ in 0..<1000 where !answer.hasPrefix(">") {
      peer.send("f\n")
      answer = peer.receive(1)
      while !answer.hasSuffix("\n") { answer += peer.receive(1) }
    }
    XCTAssertTrue(answer.hasPrefix(">"), answer)
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

  func testBadArguments() throws {
    for arguments in [["--loud"], ["--listen"]] {
      let daemon = try ChildProcess(built("echod"), arguments, stderrToStdout: true)
      XCTAssertEqual(try daemon.wait(), .status(64))
      XCTAssertEqual(daemon.output.count, 1)
    }
    for address in ["nonsense", "127.0.0.1:x", "192.0.2.1:1"] {
      let daemon = try ChildProcess(built("echod"), ["--listen", address], stderrToStdout: true)
      XCTAssertEqual(try daemon.wait(), .status(70))
      XCTAssertTrue(daemon.output.joined().contains("Could not listen at \(address)"))
    }
    let help = try ChildProcess(built("echod"), ["--help"])
    XCTAssertEqual(try help.wait(), .status(0))
    XCTAssertTrue(help.output.first?.hasPrefix("Usage: echod") == true)
  }
}
