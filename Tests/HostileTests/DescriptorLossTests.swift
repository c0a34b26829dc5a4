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

  private func robbed(
    _ place: String, _ kind: String, environment: [String: String] = [:]
  ) throws -> ChildProcess {
    let daemon = try ChildProcess(
      built("ProbeDaemon"), ["robbed", place, kind, path], environment: environment,
      stderrToStdout: true)
    try daemon.expect("foreground")
    daemon.send(SIGUSR1)
    try daemon.expect("robbed")
    return daemon
  }

  private func endsWell(_ daemon: ChildProcess, file: StaticString = #filePath, line: UInt = #line)
    throws
  {
    daemon.send(SIGTERM)
    let exit = try daemon.wait(file: file, line: line)
    let output = daemon.output.joined(separator: "\n")
    XCTAssertEqual(exit, .status(0), output, file: file, line: line)
    for said in ["save: ", "terminate: ", "untouched"] {
      XCTAssertTrue(
        daemon.output.contains { $0.hasPrefix(said) }, "no \(said)\n\(output)", file: file,
        line: line)
    }
    XCTAssertTrue(
      output.contains("Descriptors of the event thread were closed"), output, file: file, line: line
    )
    XCTAssertEqual(try String(contentsOfFile: path, encoding: .utf8), content)
  }

  /// In a hook, so that the thread that listens comes back to a set that is gone; or while that one waits.
  func testItGoesOnWithOthers() throws {
    for place in ["hook", "thread"] {
      for kind in ["files", "sockets", "eventfds"] {
        let daemon = try robbed(place, kind)
        // Deadlines are kept, though what was set for them is gone.
        try daemon.expect("ticking")
        daemon.send(SIGUSR2)
        try daemon.expect("foreground")
        try endsWell(daemon)
      }
    }
  }

  /// Without a signal, also when the thread that listens waits for a pressure file.
  func testALossBesideAPressureFileIsNoticed() throws {
    let file = "/proc/pressure/cpu"
    try XCTSkipUnless(access(file, W_OK) == 0, "\(file) can't be written to")
    // 200 ms in 2 s, as systemd has it.
    let environment = [
      "CPU_PRESSURE_WATCH": file, "CPU_PRESSURE_WRITE": "c29tZSAyMDAwMDAgMjAwMDAwMAA=",
    ]
    for kind in ["files", "sockets", "eventfds"] {
      let daemon = try robbed("pressure", kind, environment: environment)
      try daemon.expect("ticking")
      try endsWell(daemon)
      let output = daemon.output.joined(separator: "\n")
      XCTAssertTrue(output.contains("PressureSource has lost its descriptors too"), output)
    }
  }

  /// The signal may come before the loss is known.
  func testATerminationAtOnceIsObeyed() throws {
    for _ in 0..<LongTests.count(1, long: 5) {
      for kind in ["files", "sockets", "eventfds"] { try endsWell(try robbed("thread", kind)) }
    }
  }

  func testItDoesNotSpin() throws {
    let daemon = try robbed("thread", "files")
    let before = try daemon.processorTime()
    usleep(1_000_000)  // what is measured, and not a wait
    // One that spins has all that a busy machine leaves it.
    XCTAssertLessThan(try daemon.processorTime() - before, 0.15)
    try endsWell(daemon)
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
