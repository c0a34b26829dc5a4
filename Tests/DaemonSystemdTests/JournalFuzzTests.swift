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

/// Entries of generated parts. Names, and what is read of entries of any size, are in `Tests/Fuzz`.
@Suite(.offThePool) struct JournalFuzzTests {
  private typealias Field = JournalParser.Field

  /// Read back it is as it was; as lines, each that the journal would see has the entry's priority and no other.
  @Test func everyEntryIsReadAsItWasWritten() throws {
    var mutator = ByteMutator(
      seed: 20_260_101, ["", "a", "é🙂", "x y", "MESSAGE=", "<0>x", "a\r\nb", "_PID=1\n"])
    let levels: [JournalPriority] = [.emergency, .error, .info, .debug]
    for number in 0..<ByteMutator.inputs {
      var entry = JournalEntry(mutator.text(), levels[mutator.below(4)])
      for _ in 0..<mutator.below(4) {
        entry.fields.append(try JournalField(["A", "B_2"][mutator.below(2)], mutator.bytes()))
      }
      let priority = "\(entry.priority.level)"
      let expected =
        [
          Field(name: "MESSAGE", value: Array(entry.message.utf8)),
          Field(name: "PRIORITY", value: Array(priority.utf8)),
        ] + entry.fields.map { Field(name: $0.name, value: $0.value) }
      let found = try JournalParser.fields(of: entry.encoded(identifier: nil))
      try #require(found == expected, "entry \(number): \(entry) was read back as \(found)")
      let lines = entry.prefixedLines.utf8.split(omittingEmptySubsequences: false) {
        $0 == 10 || $0 == 0
      }
      try #require(lines.allSatisfy { $0.starts(with: "<\(priority)>".utf8) }, "\(entry)")
    }
  }
}
