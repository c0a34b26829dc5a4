// SPDX-License-Identifier: Apache-2.0
/// One entry for the journal: a message, its priority, and fields.
///
/// ```swift
/// var entry = JournalEntry("Could not reach \(host)", .error)
/// try entry.add("HOST", host)
/// entry.addSource()
/// journal.write(entry)
/// ```
///
/// A plain value. Source: systemd.journal-fields(7).
public struct JournalEntry: Sendable, Hashable {
  /// What people read; it may have several lines.
  public var message: String
  /// How urgent it is; `info` unless said.
  public var priority: JournalPriority
  /// The kind of message this is.
  public var messageID: MessageID?
  /// In the order in which they are sent; names may repeat.
  package var fields: [JournalField] = []

  /// How many fields are sent at most: the journal drops entries with more than 1024 whole.
  static let maximumFields = 1000

  /// An entry with a message; fields may be added to it.
  ///
  /// - Parameters:
  ///   - message: What people read.
  ///   - priority: How urgent it is.
  ///   - messageID: The kind of message this is.
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

  /// Adds a field of text; an entry may have several of one name.
  ///
  /// Of more than 1000 fields the rest is left out, and the entry says how many in its field `FIELDS_OMITTED`.
  ///
  /// - Parameters:
  ///   - name: 1 to 64 of A–Z, 0–9 and _, beginning with a letter.
  ///   - value: Any text, newlines included.
  /// - Throws: ``SystemdError/invalidArgument(_:)`` for a name that the journal would drop.
  public mutating func add(_ name: String, _ value: String) throws(SystemdError) {
    fields.append(try JournalField(name, value))
  }

  /// Adds a field of any bytes, otherwise as ``add(_:_:)``.
  ///
  /// - Throws: ``SystemdError/invalidArgument(_:)`` for a name that the journal would drop.
  public mutating func add(_ name: String, bytes: [UInt8]) throws(SystemdError) {
    fields.append(try JournalField(name, bytes: bytes))
  }

  /// Adds where in the code the entry was made: CODE_FILE, CODE_LINE and CODE_FUNC.
  public mutating func addSource(
    file: String = #fileID, line: Int = #line, function: String = #function
  ) {
    fields.append(JournalField(known: "CODE_FILE", file))
    fields.append(JournalField(known: "CODE_LINE", String(line)))
    fields.append(JournalField(known: "CODE_FUNC", function))
  }
}
