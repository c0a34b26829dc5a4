// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import XCTest

@testable import pollerd

/// What is polled may be anything: a poll takes the beginning of it, and waits for nobody.
final class PollSourceTests: XCTestCase {
  private var directory: Folder!
  private var path: String { directory.path + "/source" }

  override func setUpWithError() throws {
    signal(SIGPIPE, SIG_IGN)
    directory = try Folder()
  }
  override func tearDown() { directory = nil }

  private func read() throws -> String { try PollSource(path: path).read() }

  private func checkIsRefused(
    _ path: String, _ reason: String, file: StaticString = #filePath, line: UInt = #line
  ) {
    XCTAssertThrowsError(try PollSource(path: path).read(), file: file, line: line) {
      XCTAssertEqual("\($0)", "Could not read \(path): \(reason).", file: file, line: line)
    }
  }

  // MARK: Files

  func testTheFirstLineIsRead() throws {
    for (text, line) in [("  a b \nc", "a b"), ("x\r\ny", "x"), ("", ""), ("\nz", "")] {
      try directory.write(text, to: "source")
      XCTAssertEqual(try read(), line)
    }
  }

  func testALongLineIsCut() throws {
    try directory.write(String(repeating: "x", count: 100_000), to: "source")
    XCTAssertEqual(try read(), String(repeating: "x", count: 2000))
  }

  func testOfAHugeFileTheBeginningIsRead() throws {
    try directory.write("first line\n", to: "source")
    XCTAssertEqual(truncate(path, 1 << 40), 0)
    XCTAssertEqual(try read(), "first line")
  }

  func testWhatCannotBeReadIsASentence() {
    checkIsRefused(directory.path, "Is a directory")
    checkIsRefused(directory.path + "/source/below", "No such file or directory")
    // Root may open every file; this one can't be read at its beginning by anybody.
    checkIsRefused("/proc/self/mem", "Input/output error")
  }

  // MARK: Devices and FIFOs

  func testOfADeviceWithoutEndTheBeginningIsRead() throws {
    XCTAssertEqual(
      try PollSource(path: "/dev/zero").read(), String(repeating: "\0", count: 2000))
  }

  func testAFIFOWithoutAWriterIsNotWaitedFor() throws {
    XCTAssertEqual(mkfifo(path, 0o600), 0)
    XCTAssertEqual(try read(), "")
  }

  func testAFIFOWhoseWriterIsSilentIsNotWaitedFor() throws {
    XCTAssertEqual(mkfifo(path, 0o600), 0)
    // Without a reader it could not be opened for writing.
    let reader = open(path, O_RDONLY | O_NONBLOCK)
    defer { close(reader) }
    let writer = FileHandle(
      fileDescriptor: open(path, O_WRONLY | O_NONBLOCK), closeOnDealloc: true)
    XCTAssertEqual(try read(), "")
    // Nor is it for more than there is.
    try writer.write(contentsOf: Data("first line\nhalf a".utf8))
    XCTAssertEqual(try read(), "first line")
  }
}
