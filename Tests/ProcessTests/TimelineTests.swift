import Foundation
import TestSupport
import XCTest

/// What a daemon that terminates says on standard error, of whatever kind that is.
final class TimelineTests: XCTestCase {
  private let title =
    /lifecycle: terminate \(SIGTERM from pid \d+ uid \d+\) in \d+(\.\d)? m?s of 90 s/

  /// Its last lines, once it has ended well.
  private func timeline(_ text: [String], file: StaticString = #filePath, line: UInt = #line)
    -> [Substring]
  {
    let lines = text.joined(separator: "\n").split(separator: "\n")
    return Array(lines.drop { $0.wholeMatch(of: title) == nil })
  }

  /// Without what a slow machine adds: how long the slowest of several hooks took, as in `saved (12 ms)`.
  private func withoutSlowest(_ line: Substring?) -> String? {
    line.map { String($0).replacing(#/ \(\d+(\.\d)? m?s\)/#, with: "") }
  }

  func testAPipeGetsPlainLines() throws {
    let daemon = try ChildProcess(
      built("ProbeDaemon"), ["log"], environment: ["LANG": "C.UTF-8", "TERM": "xterm"],
      stderrToStdout: true)
    try daemon.expect("foreground")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    let lines = timeline(daemon.output)
    XCTAssertNotNil(
      withoutSlowest(lines.dropFirst().first)?.wholeMatch(
        of: #/  Logger  \|[ .#]{25}  \d+(\.\d)? m?s  paused, saved, terminated/#),
      "\(daemon.output)")
    // Before anything that the program says of its end: it is not late.
    XCTAssertTrue(lines.contains { $0.hasPrefix("exit 0") }, "\(daemon.output)")
  }

  func testATerminalGetsBlocks() throws {
    // Wide enough for what a slow machine adds.
    let terminal = try Terminal(columns: 80)
    let daemon = try ChildProcess(
      built("ProbeDaemon"), ["log"], environment: ["LANG": "C.UTF-8", "TERM": "xterm"],
      stderr: terminal.path)
    try daemon.expect("foreground")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    let text = terminal.text()
    let lines = timeline([text])
    XCTAssertNotNil(
      withoutSlowest(lines.last)?.wholeMatch(
        of: #/  Logger  ▏[ ▏▎▍▌▋▊▉█]{20}  \d+(\.\d)? m?s  paused, saved, terminated/#),
      text)
  }

  func testATerminalWithoutUTF8GetsPlainLines() throws {
    let terminal = try Terminal(columns: 72)
    let daemon = try ChildProcess(
      built("ProbeDaemon"), ["log"], environment: ["LANG": "C", "TERM": "xterm"],
      stderr: terminal.path)
    try daemon.expect("foreground")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    let text = terminal.text()
    XCTAssertTrue(text.contains("Logger  |") && text.utf8.allSatisfy { $0 < 0x80 }, text)
  }

  /// Nobody reads it: the end does not wait.
  func testAFullPipeDelaysNothing() throws {
    let path = FileManager.default.temporaryDirectory.path + "/lifecycle-full-\(getpid())"
    XCTAssertEqual(mkfifo(path, 0o600), 0)
    defer { unlink(path) }
    let pipe = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
    defer { close(pipe) }
    let page = [UInt8](repeating: UInt8(ascii: "x"), count: 4096)
    while write(pipe, page, page.count) > 0 {}
    // Room for less than the timeline: none of it, rather than half.
    var some = [UInt8](repeating: 0, count: 4096)
    _ = read(pipe, &some, some.count)
    while write(pipe, page, 64) > 0 {}
    let daemon = try ChildProcess(built("ProbeDaemon"), ["log"], stderr: path)
    try daemon.expect("foreground")
    daemon.send(SIGTERM)
    try daemon.expect("exit 0")
    XCTAssertEqual(try daemon.wait(), .status(0))
    var said: [UInt8] = []
    while case let count = read(pipe, &some, some.count), count > 0 { said += some[..<count] }
    XCTAssertFalse(String(decoding: said, as: UTF8.self).contains("terminate"))
  }

  func testAFileKeepsIt() throws {
    let path = FileManager.default.temporaryDirectory.path + "/lifecycle-log-\(getpid())"
    close(creat(path, 0o600))
    defer { unlink(path) }
    let daemon = try ChildProcess(built("ProbeDaemon"), ["log"], stderr: path)
    try daemon.expect("foreground")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    let lines = timeline([try String(contentsOfFile: path, encoding: .utf8)])
    XCTAssertEqual(lines.count, 2, "\(lines)")
  }

  func testPollerdShowsWhoWasSlow() throws {
    let state = FileManager.default.temporaryDirectory.path + "/lifecycle-timeline-\(getpid())"
    defer { try? FileManager.default.removeItem(atPath: state) }
    let daemon = try ChildProcess(built("pollerd"), ["--state", state], stderrToStdout: true)
    try daemon.expect("poll 1")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    let lines = timeline(daemon.output)
    XCTAssertTrue(lines.contains { $0.hasPrefix("  Poller ") && $0.contains("saved") }, "\(lines)")
  }
}

/// A pseudo-terminal: what a process writes to its path is there to be read.
private final class Terminal {
  let path: String
  private let master: Int32
  /// Keeps what was written until it is read.
  private let slave: Int32

  init(columns: UInt16) throws {
    // Glibc's module has no posix_openpt(3): by hand, as that does.
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    var unlocked: Int32 = 0
    var number: UInt32 = 0
    let (setLock, getNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)
    guard master >= 0, ioctl(master, setLock, &unlocked) == 0,
      ioctl(master, getNumber, &number) == 0
    else { throw TestFailure("no pseudo-terminal") }
    path = "/dev/pts/\(number)"
    slave = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)
    var size = winsize(ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    guard slave >= 0, ioctl(slave, UInt(TIOCSWINSZ), &size) == 0 else {
      throw TestFailure("no pseudo-terminal at \(path)")
    }
  }

  deinit {
    close(slave)
    close(master)
  }

  /// What has been written so far, without the terminal's carriage returns.
  func text() -> String {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    var ready = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
    // A written line takes a moment to get through the terminal's queue.
    while poll(&ready, 1, bytes.isEmpty ? 10_000 : 200) == 1 {
      let count = read(master, &buffer, buffer.count)
      if count <= 0 { break }
      bytes += buffer[..<count]
    }
    return String(decoding: bytes, as: UTF8.self).replacing("\r\n", with: "\n")
  }
}
