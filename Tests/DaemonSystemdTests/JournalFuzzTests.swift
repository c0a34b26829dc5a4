// SPDX-License-Identifier: Apache-2.0
import CLinux
import TestSupport
import Testing

@testable import DaemonSystemd

/// Reads the native protocol as its specification has it; knows nothing of the encoder.
enum JournalParser {
  struct Field: Equatable {
    var name: String
    var value: [UInt8]
  }
  struct Malformed: Error { var offset: Int }

  static func fields(of bytes: [UInt8]) throws -> [Field] {
    var fields: [Field] = []
    try bytes.withUnsafeBytes { raw in
      var at = 0
      while at < raw.count {
        let start = at
        guard let line = find(10, in: raw, from: at) else { throw Malformed(offset: start) }
        if let equals = find(61, in: raw, from: at), equals < line {
          fields.append(
            Field(name: text(raw[start..<equals]), value: Array(raw[(equals + 1)..<line])))
          at = line + 1
          continue
        }
        guard raw.count - line - 1 >= 8 else { throw Malformed(offset: start) }
        let length = raw.loadUnaligned(fromByteOffset: line + 1, as: UInt64.self).littleEndian
        let begin = line + 9
        guard length < raw.count - begin, raw[begin + Int(length)] == 10 else {
          throw Malformed(offset: start)
        }
        let end = begin + Int(length)
        fields.append(Field(name: text(raw[start..<line]), value: Array(raw[begin..<end])))
        at = end + 1
      }
    }
    return fields
  }

  private static func text(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
    String(decoding: UnsafeRawBufferPointer(rebasing: bytes), as: UTF8.self)
  }

  private static func find(_ byte: Int32, in raw: UnsafeRawBufferPointer, from: Int) -> Int? {
    guard let base = raw.baseAddress, let hit = memchr(base + from, byte, raw.count - from) else {
      return nil
    }
    return base.distance(to: UnsafeRawPointer(hit))
  }
}

/// Random entries, cut out of pools made beforehand: a byte at a time would take minutes.
private struct EntryGenerator {
  var random: SeededGenerator
  private let names: [String]
  private let texts: [String]
  private let pool: [UInt8]
  private let ids: [MessageID]

  init(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789".utf8)
    var names: [String] = []
    for length in 1...64 {
      var name = [letters[random.below(26)]]
      while name.count < length { name.append(letters[random.below(letters.count)]) }
      names.append(String(decoding: name, as: UTF8.self))
    }
    let pieces = ["", "a", "=", "\n", "\0", "é", "🙂", "<0>", "MESSAGE=", "\r\n", "_PID=1\n", "x y"]
    var texts = [""]
    for _ in 0..<1000 {
      var text = ""
      for _ in 0..<random.below(12) { text += pieces[random.below(pieces.count)] }
      texts.append(text)
    }
    // Newlines and equals signs often enough, all other bytes too.
    var pool: [UInt8] = []
    for _ in 0..<8192 {
      pool.append(
        random.below(20) == 0 ? 10 : random.below(20) == 0 ? 61 : UInt8(random.below(256)))
    }
    let digits = Array("0123456789abcdef".utf8)
    var ids: [MessageID] = []
    for _ in 0..<16 {
      let id = (0..<32).map { _ in digits[random.below(16)] }
      ids.append(try MessageID(String(decoding: id, as: UTF8.self)))
    }
    self.random = random
    (self.names, self.texts, self.pool, self.ids) = (names, texts, pool, ids)
  }

  mutating func next() throws -> JournalEntry {
    var entry = JournalEntry(texts[random.below(texts.count)])
    entry.priority = [.emergency, .error, .info, .debug][random.below(4)]
    if random.below(4) == 0 { entry.messageID = ids[random.below(ids.count)] }
    for _ in 0..<random.below(4) {
      let start = random.below(pool.count)
      let length = min(random.below(random.below(50) == 0 ? 4096 : 40), pool.count - start)
      let value = Array(pool[start..<(start + length)])
      entry.fields.append(try JournalField(names[random.below(names.count)], bytes: value))
    }
    return entry
  }
}

@Suite(.offThePool) struct JournalFuzzTests {
  private typealias Field = JournalParser.Field

  @Test func everyEntryIsReadBackAsItWas() throws {
    var generator = try EntryGenerator(seed: 20_260_101)
    for number in 0..<SeededGenerator.inputs(usual: 100_000) {
      let entry = try generator.next()
      var expected = [
        Field(name: "MESSAGE", value: Array(entry.message.utf8)),
        Field(name: "PRIORITY", value: Array("\(entry.priority.level)".utf8)),
      ]
      if let id = entry.messageID {
        expected.append(Field(name: "MESSAGE_ID", value: Array(id.description.utf8)))
      }
      for field in entry.fields { expected.append(Field(name: field.name, value: field.value)) }
      let bytes = JournalEncoding.bytes(of: entry, identifier: nil)
      let found = try JournalParser.fields(of: bytes)
      guard found == expected else {
        Issue.record("entry \(number): \(entry) was read back as \(found)")
        return
      }
    }
  }

  /// Whatever the message is, each line that the journal would see has this entry's priority and no other.
  @Test func noLineIsWithoutItsPrefix() throws {
    var generator = try EntryGenerator(seed: 7)
    for _ in 0..<20_000 {
      let entry = try generator.next()
      let lines = JournalLines.prefixed(entry).utf8.split(omittingEmptySubsequences: false) {
        $0 == 10 || $0 == 0
      }
      let prefix = Array("<\(entry.priority.level)>".utf8)
      guard lines.allSatisfy({ $0.starts(with: prefix) }) else {
        Issue.record("\(entry)")
        return
      }
    }
  }

  @Test func anyNameIsTakenOrRefusedWithASentence() {
    var random = SeededGenerator(seed: 3)
    let alphabet = Array("AZ09_a=\n\0 é-".utf8) + [0xc3, 0xff]
    for _ in 0..<20_000 {
      let bytes = (0..<random.below(70)).map { _ in
        alphabet[random.below(random.below(3) == 0 ? alphabet.count : 5)]
      }
      let name = String(decoding: bytes, as: UTF8.self)
      do throws(SystemdError) {
        let field = try JournalField(name, "")
        #expect(field.name.utf8.count <= 64)
      } catch {
        guard error.description.hasSuffix("."), error.description.count > 20 else {
          Issue.record("no sentence: \(error)")
          return
        }
      }
    }
  }
}
