// SPDX-License-Identifier: Apache-2.0
/// An entry for the journal: a message, its priority, and fields.
///
/// ```swift
/// var entry = JournalEntry("Could not reach \(host)", .error)
/// try entry.add("HOST", host)
/// entry.addSource()
/// journal.write(entry)
/// ```
///
/// Source: systemd.journal-fields(7).
public struct JournalEntry: Sendable, Hashable {
  /// The text that people read. It may have several lines.
  public var message: String
  /// The priority. Default `info`.
  public var priority: JournalPriority
  /// The identifier of the kind of message.
  public var messageID: MessageID?
  /// The fields in the order in which they are sent; names may repeat.
  package var fields: [JournalField] = []

  /// The largest number of fields that are sent. The journal drops entries with more than 1024.
  static let maximumFields = 1000

  /// Makes an entry with a message; fields may be added to it.
  ///
  /// - Parameters:
  ///   - message: The text that people read.
  ///   - priority: The priority. Default `info`.
  ///   - messageID: The identifier of the kind of message.
  public init(
    _ message: String, _ priority: JournalPriority = .info, messageID: MessageID? = nil
  ) {
    self.init(message, priority, messageID: messageID, fields: [])
  }

  package init(
    _ message: String, _ priority: JournalPriority, messageID: MessageID? = nil,
    fields: [JournalField]
  ) {
    self.message = message
    self.priority = priority
    self.messageID = messageID
    self.fields = fields
  }

  /// Adds a field with a text. An entry may have several fields of one name.
  ///
  /// At most 1000 fields are sent; the field `FIELDS_OMITTED` has the number of omitted ones.
  ///
  /// - Parameters:
  ///   - name: 1 to 64 characters of A–Z, 0–9 and _, beginning with a letter.
  ///   - value: Any text, newlines included.
  /// - Throws: ``SystemdError/invalidArgument(_:)`` for a name that the journal would drop.
  public mutating func add(_ name: String, _ value: String) throws(SystemdError) {
    fields.append(try JournalField(name, value))
  }

  /// Adds a field with arbitrary bytes. Otherwise it works as ``add(_:_:)``.
  ///
  /// - Parameters:
  ///   - name: 1 to 64 characters of A–Z, 0–9 and _, beginning with a letter.
  ///   - bytes: The value.
  /// - Throws: ``SystemdError/invalidArgument(_:)`` for a name that the journal would drop.
  public mutating func add(_ name: String, bytes: [UInt8]) throws(SystemdError) {
    fields.append(try JournalField(name, bytes: bytes))
  }

  /// Adds the place in the source as the fields CODE_FILE, CODE_LINE and CODE_FUNC.
  ///
  /// - Parameters:
  ///   - file: The file. Default: the caller's.
  ///   - line: The line. Default: the caller's.
  ///   - function: The function. Default: the caller's.
  public mutating func addSource(
    file: String = #fileID, line: Int = #line, function: String = #function
  ) {
    fields.append(JournalField(known: "CODE_FILE", file))
    fields.append(JournalField(known: "CODE_LINE", String(line)))
    fields.append(JournalField(known: "CODE_FUNC", function))
  }
}
