// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

/// A writer to systemd's journal: it writes structured entries where there is a journal, else lines on standard error.
///
/// ```swift
/// let journal = try Journal(.current)
/// journal.write("Listening on \(address)", .notice)
/// journal.write(JournalEntry("Could not save", .error, messageID: saveFailed))
/// ```
///
/// Entries use the native protocol only if standard error goes to the journal (`JOURNAL_STREAM`); if a shell has
/// redirected it, they are lines. A line contains the message only; other fields are sent over the native protocol
/// only. In lines, control characters are escaped as by ``VisibleText``; the native protocol sends the message
/// unchanged.
///
/// Any thread may write. By default no write blocks: an entry that the journal does not accept at once is dropped, and
/// the next entry that gets through is preceded by one with the number of dropped entries. Source: systemd's "Native
/// Journal Protocol", sd-daemon(3).
public final class Journal: Sendable {
  package enum Destination: Sendable, Hashable {
    /// Structured entries to the journal's socket.
    case native
    /// Lines to standard error, each prefixed with its priority as `<N>`: standard error goes to the journal, but the
    /// journal's socket can't be reached.
    case prefixed
    /// Lines to standard error, which is a terminal, a file, a pipe or a container's log. Of a message with several
    /// lines all but the first are indented, so that none looks like a separate entry.
    case plain
    /// Nowhere: standard error does not go to the journal, and the caller has disabled lines.
    case nothing
  }

  /// The message ID of the entry about dropped entries; its field DROPPED_ENTRIES has their number.
  package static let droppedMessageID = MessageID(known: "0f1fcd4ac4d0457c9a2f8f2ac3cd1ad3")

  /// The function that writes lines to standard error; tests replace it.
  typealias LineWriter = @Sendable (String) -> Bool

  private let identifier: String?
  /// The socket; `nil` unless standard error goes to the journal.
  private let socket: JournalSocket?
  private let elsewhere: Destination
  private let writeLine: LineWriter
  /// Whether the last attempt to reach the socket failed. Every entry tries again. Relaxed, as `dropped`: neither
  /// publishes other memory.
  private let isUnreachable: Atomic<Bool>
  private let dropped = Atomic<Int>(0)

  /// Makes a writer. It determines whether standard error goes to the journal, and sends nothing.
  ///
  /// - Parameters:
  ///   - environment: The environment with the service manager's variables.
  ///   - identifier: The name that the journal shows in front of the message (SYSLOG_IDENTIFIER). Default `nil`: the
  ///     program's name.
  ///   - linesElsewhere: Whether to write plain lines when standard error does not go to the journal. Default true.
  /// - Throws: ``SystemdError/malformedVariable(name:value:reason:)`` if `JOURNAL_STREAM` is malformed.
  public convenience init(
    _ environment: ServiceEnvironment, identifier: String? = nil, linesElsewhere: Bool = true
  ) throws(SystemdError) {
    self.init(
      stream: try environment.journalStream, identifier: identifier ?? Journal.programName,
      linesElsewhere: linesElsewhere)
  }

  /// - Parameter stream: The file that `JOURNAL_STREAM` identifies; `nil` when it is unset.
  convenience init(
    stream: FileIdentity?, identifier: String? = Journal.programName, linesElsewhere: Bool = true,
    socketPath: String = "/run/systemd/journal/socket"
  ) {
    let isJournal = stream.map { $0 == FileIdentity(of: STDERR_FILENO) } ?? false
    self.init(
      socket: isJournal ? JournalSocket(path: socketPath) : nil, identifier: identifier,
      linesElsewhere: linesElsewhere, writeLine: { StandardError.writeText($0) })
  }

  init(
    socket: JournalSocket?, identifier: String?, linesElsewhere: Bool,
    writeLine: @escaping LineWriter
  ) {
    self.socket = socket
    self.identifier = identifier
    self.elsewhere = linesElsewhere ? .plain : .nothing
    self.writeLine = writeLine
    isUnreachable = Atomic(socket.map { !$0.answers } ?? true)
  }

  package static var programName: String { String(cString: clinux_program_name()) }

  /// The current destination of entries. The native socket is tried again with every entry, so `prefixed` may become
  /// `native` and vice versa.
  package var destination: Destination {
    guard socket != nil else { return elsewhere }
    return isUnreachable.load(ordering: .relaxed) ? .prefixed : .native
  }

  package var droppedEntries: Int { dropped.load(ordering: .relaxed) }

  // MARK: Writing

  /// Writes one entry.
  ///
  /// - Parameters:
  ///   - entry: The entry.
  ///   - waiting: Whether to wait, without a limit, for a journal that does not keep up. Default false. Lines never
  ///     wait.
  /// - Returns: Whether the whole entry was handed over; also true when nothing was to be written.
  @discardableResult
  public func write(_ entry: JournalEntry, waiting: Bool = false) -> Bool {
    if socket == nil, elsewhere == .nothing { return true }
    let unsaid = dropped.exchange(0, ordering: .relaxed)
    if unsaid > 0, !send(Self.notice(of: unsaid), waiting: waiting) {
      drop(unsaid + 1)
      return false
    }
    guard send(entry, waiting: waiting) else {
      drop(1)
      return false
    }
    return true
  }

  /// Writes a message, without blocking.
  ///
  /// - Parameters:
  ///   - message: The message.
  ///   - priority: Its priority. Default `info`.
  /// - Returns: Whether the whole entry was handed over; also true when nothing was to be written.
  @discardableResult
  public func write(_ message: String, _ priority: JournalPriority = .info) -> Bool {
    write(JournalEntry(message, priority))
  }

  /// Writes a line on standard error: with its priority where that is the journal's, elsewhere after the program's name.
  ///
  /// ```swift
  /// Journal.writeLine("Could not read \(source)", .error)
  /// exit(78)
  /// ```
  ///
  /// For what is logged right before the process ends, or when no more than a line is needed. The journal looks up the
  /// unit of an entry by the process that sent it, and does not find a process that has ended meanwhile; lines on
  /// standard error belong to the unit in any case. Never waits; any thread may call it. Control characters are escaped.
  ///
  /// - Parameters:
  ///   - text: The line.
  ///   - priority: How urgent it is.
  ///   - environment: What the service manager has said to this process.
  /// - Returns: Whether it was handed over whole.
  @discardableResult
  public static func writeLine(
    _ text: String, _ priority: JournalPriority = .info, environment: ServiceEnvironment = .current
  ) -> Bool {
    let isJournal = StandardError.isJournal(environment)
    return StandardError.writeLine(
      isJournal ? text : "\(programName): \(text)", priority, isJournal: isJournal)
  }

  private func send(_ entry: JournalEntry, waiting: Bool) -> Bool {
    guard let socket else { return writeLine(JournalLines.plain(entry)) }
    switch socket.send(JournalEncoding.bytes(of: entry, identifier: identifier), waiting: waiting) {
    case .taken:
      isUnreachable.store(false, ordering: .relaxed)
      return true
    case .full:
      isUnreachable.store(false, ordering: .relaxed)
      return false
    case .failed:
      // Standard error leads to the same journal: the message arrives without its fields.
      isUnreachable.store(true, ordering: .relaxed)
      return writeLine(JournalLines.prefixed(entry))
    }
  }

  private func drop(_ count: Int) { dropped.add(count, ordering: .relaxed) }

  private static func notice(of count: Int) -> JournalEntry {
    JournalEntry(
      "\(count) log \(count == 1 ? "entry was" : "entries were") dropped before this one, "
        + "since the log did not take \(count == 1 ? "it" : "them") in time.", .warning,
      messageID: droppedMessageID,
      fields: [JournalField(known: "DROPPED_ENTRIES", String(count))])
  }
}
