// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import XCTest

/// The hot standby as two processes, with signals.
final class StandbyProcessTests: XCTestCase {
  private let ledger = NSTemporaryDirectory() + "ledger-\(UUID().uuidString)"

  override func tearDown() { unlink(ledger) }

  private func started(_ name: String) throws -> ChildProcess {
    let daemon = try ChildProcess(
      built("standby"), ["--name", name, "--interval", "0.01", ledger], stderrToStdout: true)
    try daemon.expect("standby: \(name) stands by at")
    return daemon
  }

  /// Who has written each line; each number is there, once.
  private func writers() throws -> [String] {
    let lines = try String(contentsOfFile: ledger, encoding: .utf8).split(separator: "\n")
    let words = lines.map { $0.split(separator: " ") }
    XCTAssertEqual(words.map { Int($0[0]) }, (0..<lines.count).map { $0 + 1 })
    return words.map { String($0[1]) }
  }

  private func waitForLines(_ count: Int, by name: String) throws {
    try eventually("\(name) writes") { try writers().filter { $0 == name }.count >= count }
  }

  /// Paused, terminated or killed: the other goes on with the next number.
  func testTheOtherTakesOver() throws {
    for end in [SIGUSR1, SIGTERM, SIGKILL] {
      unlink(ledger)
      let (a, b) = (try started("a"), try started("b"))
      a.send(SIGUSR2)
      try a.expect("standby: a leads from 1")
      try waitForLines(5, by: "a")
      XCTAssertFalse(try writers().contains("b"))
      a.send(end)
      b.send(SIGUSR2)
      try b.expect("standby: b leads from")
      try waitForLines(5, by: "b")
      let writers = try writers()
      XCTAssertEqual(writers, writers.sorted())
      // Once: a second SIGTERM hurries a daemon that is still about to end.
      for daemon in end == SIGTERM ? [b] : [a, b] { daemon.send(SIGTERM) }
      XCTAssertEqual(try a.wait(), end == SIGKILL ? .signal(SIGKILL) : .status(0))
      XCTAssertEqual(try b.wait(), .status(0))
    }
  }

  func testBadFiles() throws {
    let nowhere = try ChildProcess(built("standby"), ["/no/ledger"], stderrToStdout: true)
    XCTAssertEqual(try nowhere.wait(), .status(71))
    try "root:x:0:0\n".write(toFile: ledger, atomically: false, encoding: .utf8)
    let other = try ChildProcess(built("standby"), [ledger], stderrToStdout: true)
    XCTAssertEqual(try other.wait(), .status(1))
    XCTAssertTrue(other.output.joined().contains("\(ledger) is no ledger"))
  }
}
