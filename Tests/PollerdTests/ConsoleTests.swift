// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleTesting
import Foundation
import XCTest

@testable import pollerd

/// A real pipe, and a clock that the test moves.
final class ConsoleTests: XCTestCase {
  private let mock = MockLifecycleSubject()
  private var reader: Int32 = -1
  private var writer: Int32 = -1

  override func setUp() {
    signal(SIGPIPE, SIG_IGN)
    var ends: [Int32] = [-1, -1]
    XCTAssertEqual(pipe(&ends), 0)
    (reader, writer) = (ends[0], ends[1])
    _ = fcntl(reader, F_SETFL, O_NONBLOCK)
  }

  override func tearDown() {
    close(reader)
    close(writer)
  }

  private func console() -> Console { Console(Descriptor(number: writer), clock: mock.clock) }

  /// What is in the pipe now.
  private func readAll() -> String {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while case let count = read(reader, &buffer, buffer.count), count > 0 {
      bytes += buffer.prefix(count)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  func testALineIsThereAtOnce() {
    let console = console()
    console.print("one")
    XCTAssertEqual(readAll(), "one\n")
    XCTAssertTrue(console.printIfRoom("two"))
    XCTAssertEqual(readAll(), "two\n")
    // The others that share the pipe may still block.
    XCTAssertEqual(fcntl(writer, F_GETFL) & O_NONBLOCK, 0)
  }

  func testWhatOthersHavePutIntoALineIsEscaped() {
    let console = console()
    console.print("save failed: \u{1b}[2J\npoll 7 forged")
    XCTAssertTrue(console.printIfRoom("poll 6 \u{202e}"))
    XCTAssertEqual(
      readAll(), #"save failed: \u{1b}[2J\npoll 7 forged"# + "\n" + #"poll 6 \u{202e}"# + "\n")
  }

  func testALongLineIsCutBetweenCharacters() {
    console().print("x" + String(repeating: "ü", count: 10_000))
    XCTAssertEqual(readAll(), "x" + String(repeating: "ü", count: Int(PIPE_BUF) / 2 - 1) + "\n")
  }

  func testNobodyReading() {
    let console = console()
    close(reader)
    console.print("one")
    XCTAssertTrue(console.printIfRoom("two"))
    reader = -1
  }

  func testAFullDiskIsNoRoom() throws {
    let full = open("/dev/full", O_WRONLY)
    defer { close(full) }
    let console = Console(Descriptor(number: full), clock: mock.clock)
    XCTAssertFalse(console.printIfRoom("one"))
  }

  func testAFullPipeIsNotWaitedFor() async throws {
    let console = console()
    var count = 0
    while console.printIfRoom("line \(count + 1)") { count += 1 }
    XCTAssertGreaterThan(count, 1000)

    console.print("note 1")
    console.print("note 2")
    await mock.advance(by: .seconds(1))
    XCTAssertFalse(console.printIfRoom("too early"))

    // All of it, in order, with nobody printing more.
    let expected = (1...count).map { "line \($0)\n" }.joined() + "note 1\nnote 2\n"
    var printed = ""
    let deadline = ContinuousClock.now + .seconds(60)
    while printed.utf8.count < expected.utf8.count, ContinuousClock.now < deadline {
      printed += readAll()
      await mock.advance(by: .milliseconds(100))
    }
    XCTAssertEqual(printed, expected)
    XCTAssertTrue(console.printIfRoom("more"))
    XCTAssertEqual(readAll(), "more\n")
    try mock.checkNothingPending()
  }
}
