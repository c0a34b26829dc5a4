// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization
import Testing

@testable import DaemonSystemd

/// A journal that keeps what it is sent: a datagram socket in a folder of its own.
final class FakeJournal {
  struct Datagram: Equatable {
    var payload: [UInt8]
    /// The contents of each file that came along, and its seals.
    var files: [[UInt8]] = []
    var seals: [Int32] = []
  }

  let folder: String
  var path: String { folder + "/socket" }
  private var descriptor: Int32 = -1

  init() throws {
    var template = Array("/tmp/journal-test-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    folder = String(
      decoding: template.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
    try listen()
  }

  deinit {
    stop()
    rmdir(folder)
  }

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

  func receive() -> Datagram? {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    var received = clinux_received()
    let count = clinux_receive_descriptors(descriptor, &buffer, buffer.count, &received)
    guard count >= 0 else { return nil }
    var datagram = Datagram(payload: Array(buffer.prefix(count)))
    withUnsafeBytes(of: received.descriptors) { raw in
      for file in raw.bindMemory(to: Int32.self).prefix(Int(received.descriptor_count)) {
        datagram.seals.append(clinux_seals(file))
        datagram.files.append(Self.contents(of: file))
        close(file)
      }
    }
    return datagram
  }

  func receiveAll() -> [Datagram] {
    var all: [Datagram] = []
    while let next = receive() { all.append(next) }
    return all
  }

  private static func contents(of file: Int32) -> [UInt8] {
    var status = stat()
    fstat(file, &status)
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    let count = pread(file, &bytes, bytes.count, 0)
    return Array(bytes.prefix(max(count, 0)))
  }
}

/// Keeps the lines that would have gone to standard error.
final class Lines: Sendable {
  let written = Mutex<[String]>([])
  let isFull = Atomic<Bool>(false)
  var all: [String] { written.withLock { $0 } }

  func write(_ line: String) -> Bool {
    if isFull.load(ordering: .relaxed) { return false }
    written.withLock { $0.append(line) }
    return true
  }
}

@Suite struct JournalTests {
  let fake: FakeJournal
  let lines = Lines()

  init() throws { fake = try FakeJournal() }

  private func journal(bufferSize: Int32 = 8 << 20, isJournal: Bool = true) -> Journal {
    Journal(
      socket: isJournal ? JournalSocket(path: fake.path, bufferSize: bufferSize) : nil,
      identifier: "daemon", writeLine: { [lines] in lines.write($0) })
  }

  // MARK: Native

  @Test func anEntryByteForByte() throws {
    var entry = JournalEntry("two\nlines", .warning)
    try entry.add("MESSAGE_ID", "0123456789ABCDEF0123456789abcdef")
    try entry.add("A", "1")
    entry.fields.append(try JournalField("A", [0, 10, 255]))
    try entry.add("EMPTY", "")
    #expect(journal().write(entry))
    // A list with a type: as a sum Swift 6.2's compiler does not find one in time.
    let parts: [[UInt8]] = [
      Array("MESSAGE\n".utf8), [9, 0, 0, 0, 0, 0, 0, 0], Array("two\nlines\n".utf8),
      Array("PRIORITY=4\nMESSAGE_ID=0123456789abcdef0123456789abcdef\n".utf8),
      Array("SYSLOG_IDENTIFIER=daemon\nA=1\nA\n".utf8), [3, 0, 0, 0, 0, 0, 0, 0],
      [0, 10, 255, 10], Array("EMPTY=\n".utf8),
    ]
    #expect(fake.receiveAll() == [FakeJournal.Datagram(payload: Array(parts.joined()))])
    #expect(lines.all.isEmpty)
  }

  @Test func anOwnIdentifierReplacesTheProgramsName() throws {
    var entry = JournalEntry("x")
    try entry.add("SYSLOG_IDENTIFIER", "other")
    journal().write(entry)
    #expect(
      try #require(fake.receive()).payload
        == Array("MESSAGE=x\nPRIORITY=6\nSYSLOG_IDENTIFIER=other\n".utf8))
  }

  @Test func whatIsTooBigForADatagramIsOneSealedFile() throws {
    let message = String(repeating: "0123456789", count: 200_000)
    #expect(journal(bufferSize: 8192).write(message, .debug))
    let datagram = try #require(fake.receive())
    #expect(datagram.payload.isEmpty)
    #expect(
      datagram.files
        == [Array("MESSAGE=\(message)\nPRIORITY=7\nSYSLOG_IDENTIFIER=daemon\n".utf8)])
    // F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_WRITE.
    #expect(datagram.seals.allSatisfy { $0 & 15 == 15 })
    #expect(fake.receive() == nil)
  }

  @Test(arguments: [0, 1, 234]) func ofTooManyFieldsTheRestIsCounted(_ omitted: Int) throws {
    let all = Array(
      repeating: try JournalField("F", []), count: JournalEntry.maximumFields + omitted)
    let entry = JournalEntry("x", .info, fields: all)
    let names = try JournalParser.fields(of: entry.encoded(identifier: nil)).dropFirst(2)
    #expect(names.prefix(JournalEntry.maximumFields).allSatisfy { $0.name == "F" })
    let rest = names.dropFirst(JournalEntry.maximumFields)
    let count = JournalParser.Field(name: "FIELDS_OMITTED", value: Array("\(omitted)".utf8))
    #expect(Array(rest) == (omitted == 0 ? [] : [count]))
  }

  @Test func aNewlineAtTheEndOfAMessageIsNotALine() {
    func plain(_ message: String) -> String { JournalEntry(message).plainLines }
    #expect(plain("a\n") == "a" && plain("a\nb\n") == "a\n    b" && plain("") == "")
  }

  // MARK: A journal that does not keep up, or is away

  @Test func aFullJournalIsNotWaitedForAndTheDroppedAreSaid() throws {
    let journal = journal()
    var taken = 0
    while taken < 100_000, journal.write("entry \(taken)") { taken += 1 }
    try #require(taken < 100_000, "the queue of the fake journal has no end")
    #expect(!journal.write("lost too"))
    #expect(journal.droppedEntries == 2)
    let before = fake.receiveAll()
    #expect(before.count == taken)

    #expect(journal.write("after"))
    #expect(journal.droppedEntries == 0)
    let after = try fake.receiveAll().map { try JournalParser.fields(of: $0.payload) }
    try #require(after.count == 2)
    #expect(after[0].contains(.init(name: "DROPPED_ENTRIES", value: Array("2".utf8))))
    #expect(after[0].contains(.init(name: "PRIORITY", value: Array("4".utf8))))
    #expect(
      after[0].contains(
        .init(name: "MESSAGE_ID", value: Array(Journal.droppedMessageID.description.utf8))))
    #expect(after[1].first == .init(name: "MESSAGE", value: Array("after".utf8)))
    #expect(lines.all.isEmpty)
  }

  @Test func withoutItsSocketLinesGetThePriority() throws {
    let journal = journal()
    fake.stop()
    #expect(journal.write(JournalEntry("one\n<0>two\0three\n", .error)))
    #expect(lines.all == ["<3>one\n<3><0>two\n<3>three"])
    try fake.listen()
    #expect(journal.write("back"))
    #expect(fake.receiveAll().count == 1)
    #expect(lines.all.count == 1)
  }

  @Test func linesThatAreNotTakenAreCountedToo() {
    let journal = journal(isJournal: false)
    lines.isFull.store(true, ordering: .relaxed)
    #expect(!journal.write("lost"))
    lines.isFull.store(false, ordering: .relaxed)
    #expect(journal.write("after"))
    #expect(
      lines.all == [
        "1 log entry was dropped before this one, since the log did not take it in time.", "after",
      ])
  }

  @Test func manyThreadsLoseNothingUncounted() async throws {
    let journal = journal()
    let counts = await withTaskGroup(of: Int.self) { group in
      for thread in 0..<4 {
        group.addTask {
          var taken = 0
          for index in 0..<500 where journal.write("\(thread) \(index)") { taken += 1 }
          return taken
        }
      }
      return await group.reduce(0, +)
    }
    let unsaid = journal.droppedEntries
    var messages = 0
    var said = 0
    for datagram in fake.receiveAll() {
      let fields = try JournalParser.fields(of: datagram.payload)
      if let count = fields.first(where: { $0.name == "DROPPED_ENTRIES" }) {
        said += Int(String(decoding: count.value, as: UTF8.self)) ?? 0
      } else {
        messages += 1
      }
    }
    #expect(messages == counts)
    #expect(messages + said + unsaid == 2000)
  }

  // MARK: Elsewhere

  @Test func elsewhereLinesArePlain() {
    let journal = journal(isJournal: false)
    #expect(journal.write("one\ntwo\n", .error))
    #expect(journal.write(""))
    #expect(journal.write("\u{1b}[2J\tthree"))
    // Only an entry's first line is at the margin.
    #expect(lines.all == ["one\n    two", "", "\\u{1b}[2J\tthree"])
    #expect(fake.receive() == nil)
  }

  // MARK: What is given

  @Test func theStreamIsComparedWithTheDescriptor() throws {
    var status = stat()
    fstat(2, &status)
    let (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
    let own = try #require(
      try ServiceEnvironment(["JOURNAL_STREAM": "\(device):\(inode)"]).journalStream)
    #expect(own == FileIdentity(of: 2) && FileIdentity(of: -1) == nil)
    #expect(own != FileIdentity(device: device, inode: inode + 1))
    #expect(own != FileIdentity(device: device + 1, inode: inode))
    #expect(try Journal(ServiceEnvironment(["JOURNAL_STREAM": "\(device):\(inode)"])).isNative)
    for elsewhere in [["JOURNAL_STREAM": "\(device):\(inode + 1)"], [:]] {
      #expect(try !Journal(ServiceEnvironment(elsewhere)).isNative)
    }
  }

  @Test(arguments: [
    "", "_A", "1A", "a", "A-B", "A=B", "A\n", "Ä", String(repeating: "A", count: 65),
  ])
  func badFieldNamesAreRefused(name: String) {
    var entry = JournalEntry("x")
    #expect(throws: SystemdError.self) { try entry.add(name, "") }
  }

  @Test func goodFieldNamesAreTaken() throws {
    for name in ["A", "A_1", "Z9_", String(repeating: "A", count: 64)] {
      #expect(try JournalField(name, []).name == name)
    }
  }

  @Test(arguments: [
    "", "0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcdefa",
    "0123456789abcdef0123456789abcdeg", "01234567-89ab-cdef-0123-456789abcdef",
  ])
  func badMessageIDsAreRefused(text: String) {
    var entry = JournalEntry("x")
    #expect(throws: SystemdError.self) { try entry.add("MESSAGE_ID", text) }
  }

  @Test func theIDOfDroppedEntriesIsOne() throws {
    #expect(try MessageID("\(Journal.droppedMessageID)") == Journal.droppedMessageID)
  }
}
