// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import Testing

/// An entry of the journal: its fields, such as MESSAGE, PRIORITY, _PID.
struct JournalEntry: Sendable {
  /// A field that occurs several times, or is no text, has what Foundation makes of its JSON.
  let fields: [String: String]

  var message: String { fields["MESSAGE"] ?? "" }

  subscript(_ field: String) -> String? { fields[field] }

  /// A line of `journalctl --output=json`; `nil` for what is none.
  init?(json line: String) {
    guard let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    else { return nil }
    fields = object.mapValues { value in
      // Text that is not UTF-8 comes as an array of bytes.
      if let bytes = value as? [Int] {
        return String(decoding: bytes.map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
      }
      return value as? String ?? "\(value)"
    }
  }
}

extension MachineTest {
  /// The entries that options and matches of journalctl(1) choose: `"LIFECYCLE_EVENT=reload"`.
  func journal(_ matches: String...) async throws -> [JournalEntry] {
    // What has been written before is in the journal then.
    _ = try await run("journalctl", "--sync")
    let output = try await machine.run(
      ["journalctl", "--output=json", "--all", "--no-pager"] + matches, within: .seconds(60))
    return output.text.split(separator: "\n").compactMap { JournalEntry(json: String($0)) }
  }

  /// Waits for an entry, of those chosen, that `matches`; old ones count.
  @discardableResult
  func waitForJournal(
    _ choice: String..., within limit: Duration = .seconds(60),
    at location: SourceLocation = #_sourceLocation,
    where matches: @escaping @Sendable (JournalEntry) -> Bool
  ) async throws -> JournalEntry {
    let script = #"exec journalctl --output=json --all --no-pager --follow --no-tail "$@""#
    let entry = try await machine.firstLine(of: script, choice, within: limit) { line in
      JournalEntry(json: line).flatMap { matches($0) ? $0 : nil }
    }
    if let entry { return entry }
    throw TestFailure(
      "\(location): no such entry of \(choice.joined(separator: " ")) in \(limit)")
  }
}

extension JournalEntry {
  /// Whether it was received after another one, of the same machine.
  func isAfter(_ other: JournalEntry) -> Bool {
    sequenceNumber > other.sequenceNumber
  }

  /// Part of the cursor, `…;i=4ff;…`. Not the time: lines that are received together have the same.
  private var sequenceNumber: UInt64 {
    let field = (self["__CURSOR"] ?? "").split(separator: ";").first { $0.hasPrefix("i=") }
    return field.flatMap { UInt64($0.dropFirst(2), radix: 16) } ?? 0
  }
}
