// SPDX-License-Identifier: Apache-2.0
/// An entry for the journal: a message, its priority, and fields. Source: systemd.journal-fields(7).
package struct JournalEntry: Sendable {
  /// The text that people read. It may have several lines.
  package var message: String
  package var priority: JournalPriority
  /// The 128-bit identifier of its kind: a literal of 32 lower-case hexadecimal digits.
  package var messageID: StaticString?
  /// The fields in the order in which they are sent; names may repeat.
  package var fields: [JournalField]

  /// The largest number of fields that are sent. The journal drops entries with more than 1024.
  static let maximumFields = 1000

  package init(
    _ message: String, _ priority: JournalPriority, messageID: StaticString? = nil,
    fields: [JournalField] = []
  ) {
    self.message = message
    self.priority = priority
    self.messageID = messageID
    self.fields = fields
  }

  /// Encodes the entry in the journal's native protocol: `NAME=value\n`, or for values with a newline `NAME\n`, the
  /// length in 64 bits, little-endian, the value and `\n`. `identifier` becomes SYSLOG_IDENTIFIER.
  func encoded(identifier: String) -> [UInt8] {
    var bytes: [UInt8] = []
    Self.append("MESSAGE", message, to: &bytes)
    Self.append("PRIORITY", "\(priority.rawValue)", to: &bytes)
    if let messageID { Self.append("MESSAGE_ID", messageID.description, to: &bytes) }
    Self.append("SYSLOG_IDENTIFIER", identifier, to: &bytes)
    for field in fields.prefix(Self.maximumFields) {
      Self.append(field.name, field.value, to: &bytes)
    }
    return bytes
  }

  private static func append(_ name: String, _ value: String, to bytes: inout [UInt8]) {
    bytes += name.utf8
    if value.utf8.contains(10) {
      bytes.append(10)
      withUnsafeBytes(of: UInt64(value.utf8.count).littleEndian) { bytes.append(contentsOf: $0) }
    } else {
      bytes.append(UInt8(ascii: "="))
    }
    bytes += value.utf8
    bytes.append(10)
  }
}

/// A field of a journal entry. The name is to be a literal of 1 to 64 characters of A–Z, 0–9 and _, and begins with a letter.
package typealias JournalField = (name: String, value: String)
