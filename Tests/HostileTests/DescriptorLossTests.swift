// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import XCTest

/// Code of the daemon's own closes descriptors that are not its to close, and opens others with their numbers.
final class DescriptorLossTests: XCTestCase {
  private let path = NSTemporaryDirectory() + "loss-\(UUID().uuidString)"
  private let content = "sixteen bytes ok"

  override func setUpWithError() throws {
    try content.write(toFile: path, atomically: true, encoding: .utf8)
  }

  override func tearDown() { unlink(path) }

  /// A daemon to which something has happened at SIGUSR1, as it has said.
  private func daemon(_ arguments: [String], until said: String) throws -> ChildProcess {
    let daemon = try ChildProcess(built("ProbeDaemon"), arguments, stderrToStdout: true)
    try daemon.expect("foreground")
    daemon.send(SIGUSR1)
    try daemon.expect(said)
    return daemon
  }

  /// Logged, saved, and ended with status 70.
  private func endsWell(_ daemon: ChildProcess, file: StaticString = #filePath, line: UInt = #line)
    throws
  {
    let exit = try daemon.wait(file: file, line: line)
    let output = daemon.output.joined(separator: "\n")
    XCTAssertEqual(exit, .status(70), output, file: file, line: line)
    for said in ["save: a lost descriptor", "terminate: a lost descriptor"] {
      XCTAssertTrue(daemon.output.contains(said), "no \(said)\n\(output)", file: file, line: line)
    }
    XCTAssertTrue(
      output.contains("The daemon saves its state and ends."), output, file: file,
      line: line)
  }

  /// In a hook, so that the thread that listens comes back to descriptors that are gone; or while that one waits. A socket
  /// may receive a byte before that; nothing else is used.
  func testItSavesAndEnds() throws {
    for place in ["hook", "thread"] {
      for kind in ["files", "sockets", "eventfds"] {
        let daemon = try daemon(["robbed", place, kind, path], until: "robbed")
        try endsWell(daemon)
        XCTAssertTrue(
          kind == "sockets" || daemon.output.contains("untouched"), "\(kind): \(daemon.output)")
        XCTAssertEqual(try String(contentsOfFile: path, encoding: .utf8), content)
      }
    }
  }

  /// Ends within a second, in which it does not spin.
  private func endsQuietly(_ daemon: ChildProcess, _ sentence: String, line: UInt = #line) throws {
    try daemon.expect("ending", line: line)
    let before = try daemon.processorTime()
    try daemon.expect("ended", line: line)
    // One that spins has all that a busy machine leaves it.
    XCTAssertLessThan(try daemon.processorTime() - before, 0.3, line: line)
    try endsWell(daemon, line: line)
    let output = daemon.output.joined(separator: "\n")
    XCTAssertTrue(output.contains(sentence), output, line: line)
  }

  private let lost = [
    "timer": "its timer", "signals": "descriptor ", "reader": "its waker", "writer": "its waker",
  ]

  func testOneThatIsLostIsNamed() throws {
    for (kind, name) in lost {
      let daemon = try daemon(["one-lost", kind], until: "lost")
      do { try endsQuietly(daemon, "The listening thread has lost \(name)") } catch {
        throw TestFailure("\(kind): \(error)")
      }
    }
  }

  func testAWaitThatIsRefusedEndsTheDaemon() throws {
    for error in [ENOSYS, EPERM, EINVAL] {
      let daemon = try daemon(["poll-refused", "\(error)"], until: "refused 0")
      let reason = String(cString: strerror(error))
      try endsQuietly(daemon, "The listening thread can't wait: poll(2) is refused: \(reason).")
    }
  }

  func testSignalsAreStillObeyed() throws {
    for scenario in lost.keys.map({ ["one-lost", $0] }) + [["poll-refused", "\(ENOSYS)"]] {
      let daemon = try daemon(scenario + ["slow"], until: "ending")
      daemon.send(SIGTERM)
      daemon.send(SIGINT)
      XCTAssertEqual(try daemon.wait(), .status(124), "\(scenario)")
      let output = daemon.output.joined(separator: "\n")
      XCTAssertTrue(output.contains("hurried by a second signal"), output)
    }
  }
}

extension ChildProcess {
  /// Seconds.
  func processorTime() throws -> Double {
    let text = try String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)
    let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
    let ticks = fields[12...13].compactMap { Double($0) }.reduce(0, +)
    return ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
  }
}
