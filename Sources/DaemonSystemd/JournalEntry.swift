// SPDX-License-Identifier: Apache-2.0
/// An entry for the journal: a message, its priority, and fields.
///
/// ```swift
/// var entry = JournalEntry("The disk is full", .error)
/// try entry.add("MESSAGE_ID", "5c3c1d2f8a0e4b6f9d7e6a5b4c3d2e1f")
/// try entry.add("HOST", host)
/// journal.write(entry)
/// // journalctl MESSAGE_ID=5c3c1d2f8a0e4b6f9d7e6a5b4c3d2e1f
/// ```
///
/// Source: systemd.journal-fields(7).
public struct JournalEntry: Sendable, Hashable {
  /// The text that people read. It may have several lines.
  public var message: String
  /// The priority. Default `info`.
  public var priority: JournalPriority
  package var messageID: MessageID?
  /// The fields in the order in which they are sent; names may repeat.
  package var fields: [JournalField] = []

  /// The largest number of fields that are sent. The journal drops entries with more than 1024.
  static let maximumFields = 1000

  /// Makes an entry with a message; fields may be added to it.
  ///
  /// - Parameters:
  ///   - message: The text that people read.
  ///   - priority: The priority. Default `info`.
  public init(_ message: String, _ priority: JournalPriority = .info) {
    self.init(message, priority, fields: [])
  }

  package init(
    _ message: String, _ priority: JournalPriority, messageID: MessageID? = nil,
    fields: [JournalField] = []
  ) {
    self.message = message
    self.priority = priority
    self.messageID = messageID
    self.fields = fields
  }

  /// Adds a field with a text. An entry may have several fields of one name.
  ///
  /// The field `MESSAGE_ID` has 32 hexadecimal digits, by which operators find every entry of a kind. Create one for
  /// each kind of message with `systemd-id128 new`, and never change it.
  ///
  /// At most 1000 fields are sent; the field `FIELDS_OMITTED` has the number of omitted ones.
  ///
  /// - Parameters:
  ///   - name: 1 to 64 characters of A–Z, 0–9 and _, beginning with a letter.
  ///   - value: Any text, newlines included.
  /// - Throws: ``SystemdError/invalidArgument(_:)`` for a name that the journal would drop, or a malformed `MESSAGE_ID`.
  public mutating func add(_ name: String, _ value: String) throws(SystemdError) {
    if name == "MESSAGE_ID" {
      messageID = try MessageID(value)
    } else {
      fields.append(try JournalField(name, Array(value.utf8)))
    }
  }

  // MARK: The native protocol

  /// Encodes the entry in the journal's native protocol: `NAME=value\n`, or for values with a newline `NAME\n`, the
  /// length in 64 bits, little-endian, the value and `\n`. `identifier` becomes SYSLOG_IDENTIFIER unless the entry has
  /// that field.
  func encoded(identifier: String?) -> [UInt8] {
    let omitted = fields.count - Self.maximumFields
    let fields = fields.prefix(Self.maximumFields)
    var bytes: [UInt8] = []
    Self.append("MESSAGE", message.utf8, to: &bytes)
    Self.append("PRIORITY", "\(priority.level)".utf8, to: &bytes)
    if let messageID { Self.append("MESSAGE_ID", messageID.description.utf8, to: &bytes) }
    if let identifier, !fields.contains(where: { $0.name == "SYSLOG_IDENTIFIER" }) {
      Self.append("SYSLOG_IDENTIFIER", identifier.utf8, to: &bytes)
    }
    for field in fields { Self.append(field.name, field.value, to: &bytes) }
    if omitted > 0 { Self.append("FIELDS_OMITTED", "\(omitted)".utf8, to: &bytes) }
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

  // MARK: Lines for standard error

  // A newline or a NUL ends a line in the journal, so each line has the prefix: no text from outside can fake a line of
  // another priority. Without prefixes, all lines but the first are indented, so that none can fake another entry.

  /// Each line of the message with the prefix `<N>`; without a newline at the end.
  var prefixedLines: String {
    lines.map { "<\(priority.level)>\($0)" }.joined(separator: "\n")
  }

  /// The message, without a newline at the end.
  var plainLines: String { lines.joined(separator: "\n    ") }

  private var lines: [String] {
    var lines = message.utf8.split(omittingEmptySubsequences: false) { $0 == 10 || $0 == 0 }
      .map { VisibleText.lines(String(decoding: $0, as: UTF8.self)) }
    if lines.count > 1, lines.last == "" { lines.removeLast() }
    return lines
  }
}

/// A field of a journal entry: a name and a value, which may hold any bytes.
package struct JournalField: Sendable, Hashable {
  /// The name: 1 to 64 characters of A–Z, 0–9 and _, beginning with a letter.
  package let name: String
  package let value: [UInt8]

  /// Throws ``SystemdError/invalidArgument(_:)`` for a name that the journal would drop.
  init(_ name: String, _ value: [UInt8]) throws(SystemdError) {
    if let reason = Self.objection(to: name) {
      throw .invalidArgument("The journal field name \"\(name)\" \(reason).")
    }
    self.name = name
    self.value = value
  }

  /// Makes a field whose name is a literal in this package.
  package init(known name: StaticString, _ value: String) {
    self.name = name.description
    self.value = Array(value.utf8)
  }

  private static func objection(to name: String) -> String? {
    guard let first = name.utf8.first else { return "is empty" }
    if name.utf8.count > 64 { return "is longer than 64 bytes" }
    if first == UInt8(ascii: "_") {
      return "begins with _, which only the journal's own fields may"
    }
    if !name.utf8.allSatisfy({ $0.isUppercase || $0.isDigit || $0 == UInt8(ascii: "_") }) {
      return "has something other than A-Z, 0-9 and _"
    }
    if first.isDigit { return "begins with a digit" }
    return nil
  }
}

/// The 128-bit identifier of a kind of message.
package struct MessageID: Sendable, Hashable, CustomStringConvertible {
  /// 32 lower-case hexadecimal digits.
  package let description: String

  /// Throws ``SystemdError/invalidArgument(_:)`` for anything but 32 hexadecimal digits.
  init(_ text: String) throws(SystemdError) {
    guard text.utf8.allSatisfy(\.isHexDigit), text.utf8.count == 32 else {
      throw .invalidArgument(
        "The message ID \"\(text)\" is not 32 hexadecimal digits without dashes; "
          + "systemd-id128 new prints one.")
    }
    description = text.lowercased()
  }

  /// Makes an identifier that is a literal in this package.
  package init(known text: StaticString) { description = text.description }
}
