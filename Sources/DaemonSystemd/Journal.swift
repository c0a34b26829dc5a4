// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

/// Writes to systemd's journal: structured entries where there is a journal, lines elsewhere.
///
/// ```swift
/// let journal = try Journal(.current)
/// journal.write("Listening on \(address)", .notice)
/// journal.write(JournalEntry("Could not save", .error, messageID: saveFailed))
/// ```
///
/// Entries go over the native protocol only if standard error is the journal's (`JOURNAL_STREAM`); a shell
/// that redirects it gets lines. The message is all that lines have room for: other fields go over the
/// native protocol only. In lines, control characters are escaped as ``VisibleText`` says; the native protocol sends
/// what it is given.
///
/// Any thread may write. By default no write waits: what the journal does not take at once is dropped,
/// counted, and said by an entry in front of the next one that gets through. Source: systemd's "Native
/// Journal Protocol", sd-daemon(3).
public final class Journal: Sendable {
  package enum Destination: Sendable, Hashable {
    /// Structured entries to the journal's socket.
    case native
    /// Lines to standard error, each with its priority as `<N>` in front: standard error is the journal's,
    /// but its socket can't be reached.
    case prefixed
    /// Lines to standard error, which is a terminal, a file, a pipe or a container's log. Of a message with several
    /// lines all but the first are indented, so that none looks like an entry of its own.
    case plain
    /// Nowhere: standard error is not the journal's, and the caller wants no lines then.
    case nothing
  }

  /// The kind of the entry that says how many were dropped; its field DROPPED_ENTRIES has the number.
  package static let droppedMessageID = MessageID(known: "0f1fcd4ac4d0457c9a2f8f2ac3cd1ad3")

  /// How entries reach standard error; another thing only in tests.
  typealias LineWriter = @Sendable (String) -> Bool

  private let identifier: String?
  /// Nil unless standard error is the journal's.
  private let socket: JournalSocket?
  private let elsewhere: Destination
  private let writeLine: LineWriter
  /// Whether the last try to reach the socket failed. Every entry tries anew. Relaxed, as `dropped` is: neither says
  /// anything of other memory.
  private let isUnreachable: Atomic<Bool>
  private let dropped = Atomic<Int>(0)

  /// Finds out whether standard error is the journal's; sends nothing.
  ///
  /// - Parameters:
  ///   - environment: What the service manager has said to this process.
  ///   - identifier: What the journal shows in front of the message (SYSLOG_IDENTIFIER); `nil`: the name by which the
  ///     program was started.
  ///   - linesElsewhere: Whether to write plain lines when standard error is not the journal's.
  /// - Throws: ``SystemdError/malformedVariable(name:value:reason:)`` if `JOURNAL_STREAM` is not what systemd.exec(5)
  ///   says.
  public convenience init(
    _ environment: ServiceEnvironment, identifier: String? = nil, linesElsewhere: Bool = true
  ) throws(SystemdError) {
    self.init(
      stream: try environment.journalStream, identifier: identifier ?? Journal.programName,
      linesElsewhere: linesElsewhere)
  }

  /// - Parameter stream: What `JOURNAL_STREAM` says; `nil` when it is unset.
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

  /// Where entries go at present: the native socket is tried anew with every entry, so `prefixed` may become
  /// `native` and the other way round.
  package var destination: Destination {
    guard socket != nil else { return elsewhere }
    return isUnreachable.load(ordering: .relaxed) ? .prefixed : .native
  }

  package var droppedEntries: Int { dropped.load(ordering: .relaxed) }

  // MARK: Writing

  /// Writes one entry.
  ///
  /// - Parameters:
  ///   - entry: What is written.
  ///   - waiting: Whether to wait, without a limit, for a journal that does not keep up. Lines never wait.
  /// - Returns: Whether it was handed over whole, or nothing was to be written at all.
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

  /// Writes a message; never waits.
  ///
  /// - Returns: Whether it was handed over whole, or nothing was to be written at all.
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
      // Standard error is another way to the same journal: the message gets there without its fields.
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
