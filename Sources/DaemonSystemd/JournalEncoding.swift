// SPDX-License-Identifier: Apache-2.0
/// The encoding of entries in the journal's native protocol: `NAME=value\n`, or for values with a newline `NAME\n`, the
/// length in 64 bits, little-endian, the value and `\n`.
enum JournalEncoding {
  /// Encodes an entry. `identifier` becomes SYSLOG_IDENTIFIER unless the entry has that field.
  static func bytes(of entry: JournalEntry, identifier: String?) -> [UInt8] {
    let omitted = entry.fields.count - JournalEntry.maximumFields
    let fields = omitted > 0 ? entry.fields[..<JournalEntry.maximumFields] : entry.fields[...]
    var bytes: [UInt8] = []
    append("MESSAGE", entry.message.utf8, to: &bytes)
    append("PRIORITY", "\(entry.priority.level)".utf8, to: &bytes)
    if let id = entry.messageID { append("MESSAGE_ID", id.description.utf8, to: &bytes) }
    if let identifier, !fields.contains(where: { $0.name == "SYSLOG_IDENTIFIER" }) {
      append("SYSLOG_IDENTIFIER", identifier.utf8, to: &bytes)
    }
    for field in fields { append(field.name, field.value, to: &bytes) }
    if omitted > 0 { append("FIELDS_OMITTED", "\(omitted)".utf8, to: &bytes) }
    return bytes
  }

  private static func append(
    _ name: String, _ value: some Collection<UInt8>, to bytes: inout [UInt8]
  ) {
    bytes += name.utf8
    if value.contains(10) {
      bytes.append(10)
      withUnsafeBytes(of: UInt64(value.count).littleEndian) { bytes.append(contentsOf: $0) }
    } else {
      bytes.append(UInt8(ascii: "="))
    }
    bytes += value
    bytes.append(10)
  }
}
