// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Testing

/// A FIFO, a listening socket or a file in a folder of its own.
private final class Place {
  let folder: String
  var path: String { folder + "/pressure" }
  private var opened: [Int32] = []

  init() throws {
    var template = Array("/tmp/pressure-test-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    folder = String(
      decoding: template.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
  }

  deinit {
    for descriptor in opened { close(descriptor) }
    unlink(path)
    rmdir(folder)
  }

  func fifo() throws -> Int32 {
    try #require(mkfifo(path, 0o600) == 0)
    return try keep(clinux_open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC))
  }

  func listener() throws -> Int32 {
    let number = try keep(
      socket(AF_UNIX, CLINUX_SOCK_STREAM | CLINUX_SOCK_CLOEXEC | CLINUX_SOCK_NONBLOCK, 0))
    try #require(clinux_bind_unix(number, path, path.utf8.count, false) == 0)
    try #require(listen(number, 4) == 0)
    return number
  }

  func peer(of listener: Int32) throws -> Int32 { try keep(accept(listener, nil, nil)) }

  func keep(_ number: Int32) throws -> Int32 {
    try #require(number >= 0)
    opened.append(number)
    return number
  }
}

private func send(_ text: String, to number: Int32) {
  _ = write(number, text, text.utf8.count)
}

private func received(from number: Int32) -> String {
  var buffer = [UInt8](repeating: 0, count: 256)
  let count = read(number, &buffer, buffer.count)
  return String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self)
}

private func events(of monitor: PressureMonitor, milliseconds: Int32 = 0) -> Int32 {
  var ready = pollfd(
    fd: monitor.fileDescriptor, events: Int16(truncatingIfNeeded: monitor.pollEvents), revents: 0)
  poll(&ready, 1, milliseconds)
  return Int32(ready.revents)
}

/// Why this can't be watched.
private func objection(to watch: PressureWatch) -> String? {
  do throws(SystemdError) {
    _ = try PressureMonitor(watch)
    return nil
  } catch {
    return error.description
  }
}

@Suite struct PressureMonitorTests {
  private let place: Place

  init() throws { place = try Place() }

  // MARK: FIFO

  @Test func aFIFOIsReadUntilItIsEmpty() throws {
    let writer = try place.fifo()
    let monitor = try PressureMonitor(PressureWatch(path: place.path))
    #expect(monitor.pollEvents == UInt32(POLLIN))
    #expect(clinux_descriptor_flags(monitor.fileDescriptor) == FD_CLOEXEC)
    #expect(events(of: monitor) == 0)
    send(String(repeating: "x", count: 20_000), to: writer)
    #expect(events(of: monitor) == POLLIN)
    #expect(monitor.consume() == .pressure)
    #expect(events(of: monitor) == 0)
    #expect(monitor.consume() == .quiet)
  }

  @Test func whatWasWrittenIntoAFIFOAndComesBackIsNoPressure() throws {
    let writer = try place.fifo()
    let monitor = try PressureMonitor(PressureWatch(path: place.path, write: Array("arm\0".utf8)))
    #expect(events(of: monitor) == POLLIN)
    #expect(monitor.consume() == .quiet)
    send("arm\0", to: writer)
    #expect(monitor.consume() == .pressure)
  }

  @Test func theEchoDoesNotHideAPressureBehindIt() throws {
    let writer = try place.fifo()
    let monitor = try PressureMonitor(PressureWatch(path: place.path, write: Array("arm".utf8)))
    send("!", to: writer)
    #expect(monitor.consume() == .pressure)
  }

  @Test func theWriterOfAFIFOGetsWhatArmsIt() throws {
    let writer = try place.fifo()
    let monitor = try PressureMonitor(PressureWatch(path: place.path, write: [1, 0, 10]))
    #expect(received(from: writer) == "\u{1}\0\n")
    #expect(monitor.consume() == .quiet)
  }

  // MARK: Socket

  @Test func aSocketIsArmedReadAndHungUp() throws {
    let listener = try place.listener()
    let monitor = try PressureMonitor(
      PressureWatch(path: place.path, write: Array("some 1 2\0".utf8)))
    let peer = try place.peer(of: listener)
    #expect(received(from: peer) == "some 1 2\0")
    #expect(events(of: monitor) == 0)
    send("!!", to: peer)
    #expect(events(of: monitor) == POLLIN)
    #expect(monitor.consume() == .pressure)
    #expect(events(of: monitor) == 0)
    send("!", to: peer)
    shutdown(peer, CLINUX_SHUT_WR)
    #expect(monitor.consume() == .pressure)
    #expect(events(of: monitor) == POLLIN)
    #expect(monitor.consume() == .gone)
  }

  @Test func eachMonitorOfASocketHasItsOwnConnection() throws {
    let listener = try place.listener()
    let first = try PressureMonitor(PressureWatch(path: place.path))
    let second = try PressureMonitor(PressureWatch(path: place.path))
    send("!", to: try place.peer(of: listener))
    #expect(first.consume() == .pressure)
    #expect(second.consume() == .quiet)
  }

  // MARK: What can't be watched

  @Test func whatCannotBeWatchedIsSaidInASentence() throws {
    let watch = PressureWatch(path: place.path, write: [1])
    #expect(objection(to: watch)?.contains("No such file") == true)
    #expect(
      objection(to: PressureWatch(path: "/tmp", write: [1]))?
        .contains("neither a file, a FIFO nor a socket") == true)
    #expect(
      objection(to: PressureWatch(path: "/dev/null"))?
        .contains("switched off") == true)

    let file = creat(place.path, 0o600)
    close(file)
    #expect(objection(to: watch)?.contains("ordinary file") == true)
    #expect(
      objection(to: PressureWatch(path: place.path))?
        .contains("without a trigger") == true)
    var status = stat()
    stat(place.path, &status)
    #expect(status.st_size == 0, "an ordinary file must be left as it was")
  }

  /// Root could write to it, and the kernel would obey.
  @Test(
    .enabled(if: geteuid() == 0, "Needs root, who may write to it."),
    arguments: ["/proc/sys/kernel/panic_on_oops", "/proc/self/oom_score_adj"])
  func anotherFileOfTheKernelsIsNotWrittenTo(_ path: String) throws {
    // As it is, in case it is written after all.
    let file = clinux_open(path, O_RDONLY | O_CLOEXEC)
    var buffer = [UInt8](repeating: 0, count: 16)
    let content = Array(buffer.prefix(max(0, read(file, &buffer, 16))))
    close(file)
    try #require(!content.isEmpty)
    #expect(symlink(path, place.path) == 0)
    #expect(
      objection(to: PressureWatch(path: place.path, write: content))?
        .contains("nothing was written") == true)
  }

  @Test func aSocketThatNobodyListensOnIsAnError() throws {
    let number = try place.keep(socket(AF_UNIX, CLINUX_SOCK_STREAM | CLINUX_SOCK_CLOEXEC, 0))
    try #require(clinux_bind_unix(number, place.path, place.path.utf8.count, false) == 0)
    #expect(
      objection(to: PressureWatch(path: place.path))?
        .contains("connect to") == true)
  }
}
