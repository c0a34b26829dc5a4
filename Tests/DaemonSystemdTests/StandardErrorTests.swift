// SPDX-License-Identifier: Apache-2.0
import CLinux
import TestLimits
import TestSupport
import Testing

@testable import DaemonSystemd

@Suite struct StandardErrorTests {
  /// A pipe that another user has made, as under s6 and runit: no more is written than there is room for.
  @Test func aPipeThatCannotBeOpenedAgainIsNotWaitedFor() throws {
    var ends: [Int32] = [-1, -1]
    try #require(clinux_pipe(&ends) == 0)
    let reader = OwnedDescriptor(owning: ends[0])
    let writer = OwnedDescriptor(owning: ends[1])
    // One page is left.
    var page = [UInt8](repeating: 46, count: 4096)
    var room = pollfd(fd: writer.rawValue, events: Int16(POLLOUT), revents: 0)
    var pages = 0
    while poll(&room, 1, 0) == 1 { pages += write(writer.rawValue, page, page.count) / page.count }
    try #require(read(reader.rawValue, &page, page.count) == page.count)

    let line = Array(String(repeating: "ä", count: 10_000).utf8)
    let kept = StandardError.write(line, line.count, to: writer.rawValue) { _ in -1 }
    #expect(kept > 4000 && kept < 4096 && kept % 2 == 0)
    // It is full now.
    #expect(StandardError.write(line, 10, to: writer.rawValue) { _ in -1 } == -1)
    for _ in 1..<pages { try #require(read(reader.rawValue, &page, page.count) == page.count) }
    let count = read(reader.rawValue, &page, page.count)
    let text = String(decoding: page[..<max(count, 0)], as: UTF8.self)
    #expect(text == String(repeating: "ä", count: kept / 2) + "… (cut: no room)\n")
  }

  /// journald would break them itself, and take what follows for a priority.
  @Test func longLinesHaveTheirPriorityAgain() {
    let text = String(repeating: "ä", count: 20_000) + "<0>fire"
    let lines = String(
      decoding: StandardError.lines(of: "one\n\(text)", prefix: "<6>"), as: UTF8.self)
    #expect(lines == "<6>one\n<6>\(text.prefix(20_000))\n<6><0>fire\n")
    #expect(StandardError.lines(of: text, prefix: "").count == text.utf8.count + 1)
  }

  /// What Finit's services have as standard error.
  @Test func theMasterOfATerminalIsNotOpenedAgain() async throws {
    var path = [CChar](repeating: 0, count: 64)
    let master = OwnedDescriptor(owning: terminal_open(&path, path.count))
    let terminal = OwnedDescriptor(owning: clinux_open(path, O_RDWR | O_NOCTTY | O_CLOEXEC))
    var line = Array("lifecycle: all is well\n".utf8)
    #expect(StandardError.write(&line, line.count, to: master.rawValue) == line.count)

    var request = pollfd(fd: terminal.rawValue, events: Int16(POLLIN), revents: 0)
    try await eventually { poll(&request, 1, 0) == 1 }
    var arrived = [UInt8](repeating: 0, count: 100)
    let count = read(terminal.rawValue, &arrived, arrived.count)
    #expect(Array(arrived.prefix(max(count, 0))) == line)
  }
}
