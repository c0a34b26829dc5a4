// SPDX-License-Identifier: Apache-2.0
@testable import DaemonSystemd

extension FuzzTarget {
  /// An entry in the journal's protocol, read as journald reads it, is the entry: no text passes for another field.
  static let journal = FuzzTarget(name: "journal") { input in
    let names = ["A", "CODE_FILE", "LIFECYCLE_CAUSE"]
    let levels: [JournalPriority] = [.emergency, .error, .info, .debug]
    var entry = JournalEntry(input.countedText(), levels[input.below(4)])
    if input.bool() { entry.messageID = "0f1fcd4ac4d0457c9a2f8f2ac3cd1ad3" }
    let identifier = input.countedText()
    let copies = input.bool() ? Int(input.number(UInt16.self) % 1100) : 1
    while !input.isEmpty, entry.fields.count < 1100 {
      let field = JournalField(names[input.below(3)], input.countedText())
      entry.fields += Array(repeating: field, count: copies)
    }
    var expected = [("MESSAGE", entry.message), ("PRIORITY", "\(entry.priority.rawValue)")]
    if let id = entry.messageID { expected.append(("MESSAGE_ID", "\(id)")) }
    expected.append(("SYSLOG_IDENTIFIER", identifier))
    expected += entry.fields.prefix(JournalEntry.maximumFields).map { ("\($0.name)", $0.value) }
    let bytes = entry.encoded(identifier: identifier)
    guard let read = fields(of: bytes) else { return require(false, "\(bytes) is no entry") }
    require(read.count <= 1024, "journald drops an entry of \(read.count) fields")
    require(
      read.elementsEqual(expected) { $0.0 == $1.0 && $0.1.elementsEqual($1.1.utf8) },
      "\(read) of \(expected)")
  }

  /// As journald reads them; `nil` for what it would drop.
  private static func fields(of bytes: [UInt8]) -> [(String, [UInt8])]? {
    var fields: [(String, [UInt8])] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      let name = rest.prefix { $0 != 10 && $0 != UInt8(ascii: "=") }
      guard (1...64).contains(name.count), let end = rest.dropFirst(name.count).first
      else { return nil }
      rest = rest.dropFirst(name.count + 1)
      var count = rest.firstIndex(of: 10).map { $0 - rest.startIndex }
      if end == 10 {
        guard rest.count >= 8 else { return nil }
        count = Int(rest.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        rest = rest.dropFirst(8)
      }
      guard let count, rest.count > count, rest[rest.startIndex + count] == 10 else { return nil }
      fields.append((String(decoding: name, as: UTF8.self), Array(rest.prefix(count))))
      rest = rest.dropFirst(count + 1)
    }
    return fields
  }
}
