// SPDX-License-Identifier: Apache-2.0
@testable import DaemonSystemd

extension FuzzTarget {
  /// An entry in the journal's protocol, read as journald reads it, is the entry; as lines no part of it passes for another
  /// line.
  static let journal = FuzzTarget(name: "journal") { input in
    let levels: [JournalPriority] = [
      .emergency, .alert, .critical, .error, .warning, .notice, .info, .debug,
    ]
    var entry = JournalEntry(input.countedText(), levels[input.below(8)])
    if input.bool() { addMessageID(input.countedText(), to: &entry) }
    let identifier = input.bool() ? input.countedText() : nil
    if input.bool() { entry.fields = [JournalField(known: "CODE_FILE", identifier ?? "")] }
    let copies = input.bool() ? Int(input.number(UInt16.self) % 1100) : 1
    while !input.isEmpty, entry.fields.count < 1100 {
      let (name, value) = (input.countedText(), input.counted())
      do throws(SystemdError) {
        for _ in 0..<copies { entry.fields.append(try JournalField(name, value)) }
        if input.bool() { try entry.add(name, String(decoding: value, as: UTF8.self)) }
      } catch { requireSentence(error) }
    }
    checkNative(entry, identifier)
    checkLines(entry)
  }

  private static func addMessageID(_ text: String, to entry: inout JournalEntry) {
    do throws(SystemdError) {
      try entry.add("MESSAGE_ID", text)
      let id = entry.messageID?.description ?? ""
      require(
        id.utf8.count == 32 && id.utf8.allSatisfy { $0.isHexDigit && !$0.isUppercase }, id)
      require(id == text.lowercased(), "\(text) became \(id)")
    } catch {
      requireSentence(error)
      entry.messageID = MessageID(known: "0f1fcd4ac4d0457c9a2f8f2ac3cd1ad3")
    }
  }

  private static func checkNative(_ entry: JournalEntry, _ identifier: String?) {
    var expected: [(String, [UInt8])] = [
      ("MESSAGE", Array(entry.message.utf8)),
      ("PRIORITY", Array(String(entry.priority.level).utf8)),
    ]
    if let id = entry.messageID { expected.append(("MESSAGE_ID", Array(id.description.utf8))) }
    let sent = entry.fields.prefix(JournalEntry.maximumFields)
    if let identifier, !sent.contains(where: { $0.name == "SYSLOG_IDENTIFIER" }) {
      expected.append(("SYSLOG_IDENTIFIER", Array(identifier.utf8)))
    }
    expected += sent.map { ($0.name, $0.value) }
    if sent.count < entry.fields.count {
      expected.append(("FIELDS_OMITTED", Array(String(entry.fields.count - sent.count).utf8)))
    }
    let bytes = entry.encoded(identifier: identifier)
    guard let read = fields(of: bytes) else { return require(false, "\(bytes) is no entry") }
    require(read.count <= 1024, "journald drops an entry of \(read.count) fields")
    require(read.elementsEqual(expected) { $0 == $1 }, "\(read) of \(expected)")
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

  private static func checkLines(_ entry: JournalEntry) {
    let prefix = "<\(entry.priority.level)>"
    let prefixed = entry.prefixedLines.utf8.split(
      separator: 10, omittingEmptySubsequences: false)
    require(prefixed.allSatisfy { $0.starts(with: prefix.utf8) }, "a line without \(prefix)")
    let plain = entry.plainLines.utf8.split(
      separator: 10, omittingEmptySubsequences: false)
    require(plain.dropFirst().allSatisfy { $0.starts(with: "    ".utf8) }, "an entry of its own")
    require(
      (prefixed + plain).joined().allSatisfy { $0 >= 32 && $0 != 127 || $0 == 9 },
      "control characters")
  }
}
