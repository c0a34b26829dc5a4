import CLinux

/// One entry for the journal: a message, its priority, and fields.
///
///     var entry = JournalEntry("Could not reach \(host)", .error)
///     try entry.add("HOST", host)
///     entry.addErrno(errno)
///     entry.addSource()
///     journal.write(entry)
///
/// A plain value. Source: systemd.journal-fields(7).
public struct JournalEntry: Sendable, Hashable {
  /// What people read; it may have several lines.
  public var message: String
  /// How urgent it is; `info` unless said.
  public var priority: JournalPriority
  /// The kind of message this is.
  public var messageID: MessageID?
  /// In the order in which they are sent; names may repeat. The journal throws entries with more than 1024
  /// fields away whole, so of more than ``maximumFields`` the rest is left out, and the entry says how many
  /// in its field `FIELDS_OMITTED`.
  public var fields: [JournalField]

  /// How many ``fields`` are sent at most.
  public static let maximumFields = 1000

  /// An entry with a message; more fields may be added to it.
  public init(
    _ message: String, _ priority: JournalPriority = .info, messageID: MessageID? = nil,
    fields: [JournalField] = []
  ) {
    self.message = message
    self.priority = priority
    self.messageID = messageID
    self.fields = fields
  }

  /// Adds a field of text. Throws ``SystemdError/invalidArgument(_:)`` for a name that the journal would drop.
  public mutating func add(_ name: String, _ value: String) throws(SystemdError) {
    fields.append(try JournalField(name, value))
  }

  /// Adds a field of any bytes. Throws ``SystemdError/invalidArgument(_:)`` for a name that the journal would
  /// drop.
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

  /// Adds the number of a system error: ERRNO.
  public mutating func addErrno(_ errno: Int32) {
    fields.append(JournalField(known: "ERRNO", String(errno)))
  }

  /// Adds the kernel's number of the calling thread: TID.
  public mutating func addThread() {
    fields.append(JournalField(known: "TID", String(clinux_thread_id())))
  }
}
