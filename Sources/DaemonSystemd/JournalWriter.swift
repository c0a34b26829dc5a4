// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

/// A writer of entries with fields to systemd's journal.
///
/// Any thread may write, and no write waits. An entry that the journal does not accept becomes lines on standard error,
/// which leads to the same journal. If these are not accepted either, it is dropped, and the next entry that gets
/// through is preceded by one with the number of dropped entries. Source: systemd's "Native Journal Protocol".
package final class JournalWriter: Sendable {
  /// The message ID of the entry about dropped entries; its field LIFECYCLE_DROPPED has their number.
  static let droppedMessageID: StaticString = "0f1fcd4ac4d0457c9a2f8f2ac3cd1ad3"

  private let socket: DatagramSocket
  /// Writes an entry without its fields; tests replace it.
  private let writeLines: @Sendable (JournalEntry) -> Bool
  /// Relaxed: it publishes no other memory.
  private let dropped = Atomic<Int>(0)

  /// Makes a writer; `nil` unless standard error goes to the journal, or when the process has no descriptor left.
  package convenience init?(_ environment: ServiceEnvironment) {
    guard StandardError.isJournal(environment) else { return nil }
    self.init(path: "/run/systemd/journal/socket") {
      StandardError.writeText($0.message, $0.priority, isJournal: true)
    }
  }

  init?(path: String, writeLines: @escaping @Sendable (JournalEntry) -> Bool) {
    guard
      let socket = try? DatagramSocket(to: path, isAbstract: false, purpose: "open the journal")
    else { return nil }
    self.socket = socket
    self.writeLines = writeLines
  }

  /// Writes one entry. Returns whether all of it was accepted.
  @discardableResult
  package func write(_ entry: JournalEntry) -> Bool {
    let unreported = dropped.exchange(0, ordering: .relaxed)
    let isReported = unreported == 0 || send(Self.notice(of: unreported))
    if isReported, send(entry) { return true }
    dropped.add(isReported ? 1 : unreported + 1, ordering: .relaxed)
    return false
  }

  private func send(_ entry: JournalEntry) -> Bool {
    let bytes = entry.encoded(identifier: Journal.programName)
    var failure = socket.send(bytes)
    if failure == EMSGSIZE || failure == ENOBUFS,
      let file = try? OwnedDescriptor.memory(named: "journal-entry", bytes)
    {
      failure = socket.send([], [file.rawValue])
    }
    return failure == 0 || writeLines(entry)
  }

  private static func notice(of count: Int) -> JournalEntry {
    JournalEntry(
      "\(count) log \(count == 1 ? "entry was" : "entries were") dropped before this one, "
        + "since the log did not take \(count == 1 ? "it" : "them") in time.", .warning,
      messageID: droppedMessageID, fields: [("LIFECYCLE_DROPPED", String(count))])
  }
}
