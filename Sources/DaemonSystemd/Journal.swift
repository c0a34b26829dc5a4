// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

/// A writer to systemd's journal: it writes structured entries where there is a journal, else lines on standard error.
///
/// ```swift
/// let journal = try Journal(.current)
/// journal.write("Listening on \(address)", .notice)
///
/// var entry = JournalEntry("Could not reach \(host)", .error)
/// try entry.add("HOST", host)
/// journal.write(entry)
/// ```
///
/// Entries use the native protocol only if standard error goes to the journal (`JOURNAL_STREAM`); if a shell has
/// redirected it, they are lines. A line contains the message only; other fields are sent over the native protocol
/// only. In lines, control characters are escaped as by ``VisibleText``, and of a message with several lines all but
/// the first are indented; the native protocol sends the message unchanged.
///
/// Any thread may write, and no write blocks: an entry that the journal does not accept at once is dropped, and the
/// next entry that gets through is preceded by one with the number of dropped entries. Source: systemd's "Native Journal
/// Protocol", sd-daemon(3).
public final class Journal: Sendable {
  /// The message ID of the entry about dropped entries; its field DROPPED_ENTRIES has their number.
  package static let droppedMessageID = MessageID(known: "0f1fcd4ac4d0457c9a2f8f2ac3cd1ad3")

  /// The function that writes lines to standard error; tests replace it.
  typealias LineWriter = @Sendable (String) -> Bool

  private let identifier: String
  /// The socket; `nil` unless standard error goes to the journal.
  private let socket: JournalSocket?
  private let writeLine: LineWriter
  /// Relaxed: it publishes no other memory.
  private let dropped = Atomic<Int>(0)

  /// Makes a writer. It determines whether standard error goes to the journal, and sends nothing.
  ///
  /// - Parameters:
  ///   - environment: The environment with the service manager's variables.
  ///   - identifier: The name that the journal shows in front of the message (SYSLOG_IDENTIFIER). Default `nil`: the
  ///     program's name.
  /// - Throws: ``SystemdError/malformedVariable(name:value:reason:)`` if `JOURNAL_STREAM` is malformed.
  public convenience init(
    _ environment: ServiceEnvironment, identifier: String? = nil
  ) throws(SystemdError) {
    let stream = try environment.journalStream
    let isJournal = stream != nil && stream == FileIdentity(of: STDERR_FILENO)
    self.init(
      socket: isJournal ? JournalSocket(path: "/run/systemd/journal/socket") : nil,
      identifier: identifier ?? Journal.programName, writeLine: { StandardError.writeText($0) })
  }

  init(socket: JournalSocket?, identifier: String, writeLine: @escaping LineWriter) {
    self.socket = socket
    self.identifier = identifier
    self.writeLine = writeLine
  }

  package static var programName: String { String(cString: clinux_program_name()) }

  /// Whether standard error goes to the journal, so that entries have fields.
  package var isNative: Bool { socket != nil }

  package var droppedEntries: Int { dropped.load(ordering: .relaxed) }

  // MARK: Writing

  /// Writes one entry.
  ///
  /// - Returns: Whether the whole entry was handed over.
  @discardableResult
  public func write(_ entry: JournalEntry) -> Bool {
    let unsaid = dropped.exchange(0, ordering: .relaxed)
    if unsaid > 0, !send(Self.notice(of: unsaid)) {
      drop(unsaid + 1)
      return false
    }
    guard send(entry) else {
      drop(1)
      return false
    }
    return true
  }

  /// Writes a message.
  ///
  /// - Parameters:
  ///   - message: The message.
  ///   - priority: Its priority. Default `info`.
  /// - Returns: Whether the whole entry was handed over.
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

  private func send(_ entry: JournalEntry) -> Bool {
    guard let socket else { return writeLine(entry.plainLines) }
    return switch socket.send(entry.encoded(identifier: identifier)) {
    case .taken: true
    case .full: false
    // Standard error leads to the same journal: the message arrives without its fields.
    case .failed: writeLine(entry.prefixedLines)
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

/// The connection to the journal's native socket.
///
/// The socket is not connected: each datagram names the path, so a restarted journal is found again. Any thread may
/// send; one system call sends one entry.
final class JournalSocket: Sendable {
  enum Outcome {
    case taken
    /// The journal does not keep up.
    case full
    /// There is no journal, or it can't accept this entry.
    case failed
  }

  private let path: String
  /// The descriptor; `nil` when the process had none left.
  private let descriptor: Int32?

  init(path: String, bufferSize: Int32 = 8 << 20) {
    self.path = path
    let number = socket(
      AF_UNIX, CLINUX_SOCK_DGRAM | CLINUX_SOCK_CLOEXEC | CLINUX_SOCK_NONBLOCK, 0)
    descriptor = number >= 0 ? number : nil
    var size = bufferSize
    // The kernel caps it; what is missing then goes in a memory file, so a refusal is no failure.
    setsockopt(number, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
  }

  deinit { if let descriptor { close(descriptor) } }

  func send(_ bytes: [UInt8]) -> Outcome {
    guard let descriptor else { return .failed }
    var failure = send(bytes, [], over: descriptor)
    // EAGAIN: perhaps only this socket's buffer is full, and a datagram without payload still fits.
    if [EMSGSIZE, ENOBUFS, EAGAIN].contains(failure) {
      guard let file = try? OwnedDescriptor.memory(named: "journal-entry", bytes) else {
        return .failed
      }
      failure = send([], [file.rawValue], over: descriptor)
      withExtendedLifetime(file) {}
    }
    return switch failure {
    case 0: .taken
    case EAGAIN, ENOBUFS: .full
    default: .failed
    }
  }

  /// Returns 0 or an `errno` value.
  private func send(_ bytes: [UInt8], _ files: [Int32], over descriptor: Int32) -> Int32 {
    let sent = clinux_send_descriptors(
      descriptor, path, path.utf8.count, bytes, bytes.count, files, files.count, false)
    return sent < 0 ? clinux_errno() : sent == bytes.count ? 0 : EIO
  }
}
