// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization
import TestSupport
import Testing

@testable import DaemonSystemd

/// A journal that keeps what it is sent: a datagram socket.
final class FakeJournal {
  let path = shortTemporaryFolder + "journal-\(UInt64.random(in: 0 ... .max))"
  private var descriptor: Int32 = -1

  init() throws { try listen() }

  deinit { stop() }

  func listen() throws {
    descriptor = socket(AF_UNIX, CLINUX_SOCK_DGRAM | CLINUX_SOCK_CLOEXEC, 0)
    try #require(clinux_bind_unix(descriptor, path, path.utf8.count, false) == 0)
  }

  func stop() {
    guard descriptor >= 0 else { return }
    close(descriptor)
    descriptor = -1
    unlink(path)
  }

  /// The next entry, from the datagram or from the sealed file that came with it.
  func receive() throws -> String? {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    var received = clinux_received()
    let count = clinux_receive_descriptors(descriptor, &buffer, buffer.count, &received)
    guard count >= 0 else { return nil }
    guard received.descriptor_count == 1 else {
      return String(decoding: buffer[..<count], as: UTF8.self)
    }
    let file = OwnedDescriptor(owning: received.descriptors.0)
    return String(decoding: try file.memoryBytes(), as: UTF8.self)
  }

  func receiveAll() throws -> [String] {
    var all: [String] = []
    while let next = try receive() { all.append(next) }
    return all
  }
}

/// Keeps the entries that would have gone to standard error.
private final class Lines: Sendable {
  private let written = Mutex<[String]>([])
  let isFull = Atomic<Bool>(false)
  var all: [String] { written.withLock { $0 } }

  func write(_ entry: JournalEntry) -> Bool {
    if isFull.load(ordering: .relaxed) { return false }
    written.withLock { $0.append(entry.message) }
    return true
  }
}

@Suite struct JournalTests {
  private let fake: FakeJournal
  private let lines = Lines()
  private let journal: JournalWriter
  private let identifier = "SYSLOG_IDENTIFIER=\(Journal.programName)\n"

  init() throws {
    fake = try FakeJournal()
    let writer = JournalWriter(path: fake.path) { [lines] in lines.write($0) }
    journal = try #require(writer)
  }

  private func write(_ message: String) -> Bool { journal.write(JournalEntry(message, .info)) }

  @Test func anEntryByteForByte() throws {
    let entry = JournalEntry(
      "two\nlines", .warning, messageID: "0123456789abcdef0123456789abcdef",
      fields: [("A", "1"), ("A", "\n\u{1}"), ("EMPTY", "")])
    #expect(journal.write(entry))
    #expect(
      try fake.receiveAll() == [
        "MESSAGE\n\u{9}\0\0\0\0\0\0\0two\nlines\nPRIORITY=4\n"
          + "MESSAGE_ID=0123456789abcdef0123456789abcdef\n\(identifier)"
          + "A=1\nA\n\u{2}\0\0\0\0\0\0\0\n\u{1}\nEMPTY=\n"
      ])
    #expect(lines.all.isEmpty)
  }

  @Test func whatIsTooBigForADatagramIsOneSealedFile() throws {
    let message = String(repeating: "0123456789", count: 200_000)
    #expect(write(message))
    #expect(try fake.receiveAll() == ["MESSAGE=\(message)\nPRIORITY=6\n\(identifier)"])
  }

  /// The journal drops an entry with more than 1024.
  @Test func ofTooManyFieldsTheFirstAreSent() {
    let fields = Array(repeating: JournalField("F", ""), count: 1100)
    let bytes = JournalEntry("x", .info, fields: fields).encoded(identifier: "daemon")
    #expect(bytes.split(separator: 10).count == 1003)
  }

  @Test func withoutItsSocketAnEntryBecomesLines() throws {
    fake.stop()
    #expect(write("away") && lines.all == ["away"])
    try fake.listen()
    #expect(write("back"))
    #expect(try fake.receiveAll().count == 1 && lines.all.count == 1)
  }

  @Test func aFullJournalIsNotWaitedForAndTheDroppedAreReported() throws {
    lines.isFull.store(true, ordering: .relaxed)
    var taken = 0
    while taken < 100_000, write("entry \(taken)") { taken += 1 }
    try #require(taken < 100_000, "the queue of the fake journal has no end")
    #expect(!write("lost too"))
    #expect(try fake.receiveAll().count == taken)

    #expect(write("after"))
    let after = try fake.receiveAll()
    let message =
      "2 log entries were dropped before this one, since the log did not take them in time."
    let id = JournalWriter.droppedMessageID
    #expect(
      after == [
        "MESSAGE=\(message)\nPRIORITY=4\nMESSAGE_ID=\(id)\n\(identifier)LIFECYCLE_DROPPED=2\n",
        "MESSAGE=after\nPRIORITY=6\n\(identifier)",
      ])
  }

  @Test func manyThreadsLoseNothingUncounted() async throws {
    lines.isFull.store(true, ordering: .relaxed)
    let taken = await withTaskGroup(of: Int.self) { group in
      for thread in 0..<4 {
        group.addTask { [journal] in
          (0..<500).count { journal.write(JournalEntry("\(thread) \($0)", .info)) }
        }
      }
      return await group.reduce(0, +)
    }
    var entries = try fake.receiveAll()
    #expect(write("the end"))
    entries += try fake.receiveAll()
    let reported = entries.compactMap { entry in
      entry.split(separator: "\n").first { $0.hasPrefix("LIFECYCLE_DROPPED=") }
        .flatMap { Int($0.dropFirst("LIFECYCLE_DROPPED=".count)) }
    }
    #expect(entries.count - reported.count == taken + 1)
    #expect(taken + reported.reduce(0, +) == 2000)
  }

  @Test func theStreamIsComparedWithTheDescriptor() throws {
    var status = stat()
    fstat(2, &status)
    let (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
    let own = ServiceEnvironment(["JOURNAL_STREAM": "\(device):\(inode)"])
    #expect(StandardError.isJournal(own) && JournalWriter(own) != nil)
    for other in ["\(device):\(inode + 1)", "\(device + 1):\(inode)", "x"] {
      let environment = ServiceEnvironment(["JOURNAL_STREAM": other])
      #expect(!StandardError.isJournal(environment) && JournalWriter(environment) == nil)
    }
    #expect(!StandardError.isJournal(ServiceEnvironment([:])))
  }
}
