import CLinux

/// The bytes of an entry in the journal's native protocol: `NAME=value\n`, or for values with a newline
/// `NAME\n`, the length as 64 bits little-endian, the value and `\n`.
enum JournalEncoding {
  /// `identifier` becomes SYSLOG_IDENTIFIER unless the entry has one of its own.
  static func bytes(of entry: JournalEntry, identifier: String?) -> [UInt8] {
    let omitted = entry.fields.count - JournalEntry.maximumFields
    let fields = omitted > 0 ? entry.fields[..<JournalEntry.maximumFields] : entry.fields[...]
    var bytes: [UInt8] = []
    bytes.reserveCapacity(size(of: entry, fields))
    append("MESSAGE", entry.message, to: &bytes)
    append("PRIORITY", String(entry.priority.level), to: &bytes)
    if let id = entry.messageID { append("MESSAGE_ID", id.description, to: &bytes) }
    if let identifier, !fields.contains(where: { $0.name == "SYSLOG_IDENTIFIER" }) {
      append("SYSLOG_IDENTIFIER", identifier, to: &bytes)
    }
    for field in fields {
      field.value.withUnsafeBufferPointer { append(field.name, $0, to: &bytes) }
    }
    if omitted > 0 { append("FIELDS_OMITTED", String(omitted), to: &bytes) }
    return bytes
  }

  private static func size(of entry: JournalEntry, _ fields: ArraySlice<JournalField>) -> Int {
    var size = entry.message.utf8.count + 200
    for field in fields { size += field.value.count + field.name.utf8.count + 10 }
    return size
  }

  private static func append(_ name: String, _ value: String, to bytes: inout [UInt8]) {
    var value = value
    value.withUTF8 { append(name, $0, to: &bytes) }
  }

  private static func append(
    _ name: String, _ value: UnsafeBufferPointer<UInt8>, to bytes: inout [UInt8]
  ) {
    var name = name
    name.withUTF8 { bytes.append(contentsOf: $0) }
    // The pointer is valid for the buffer's count; an empty buffer may have none.
    let isLine = value.baseAddress.map { memchr($0, 10, value.count) == nil } ?? true
    if isLine {
      bytes.append(UInt8(ascii: "="))
    } else {
      bytes.append(10)
      withUnsafeBytes(of: UInt64(value.count).littleEndian) { bytes.append(contentsOf: $0) }
    }
    bytes.append(contentsOf: value)
    bytes.append(10)
  }
}
