// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The connections that systemd keeps. Used on the loop's thread only, which waits once for a systemd that does not
/// answer: from then on all messages are sent later, until systemd has taken them.
///
/// A connection is kept once it has lasted a second, and only so many in a second: a message costs systemd's process 1
/// about half a millisecond, and it reads messages before it does anything else. Clients that only connect could
/// otherwise block it for the whole machine.
final class Keeping {
  let preservation: Preservation
  /// Connections that have ended, which systemd still keeps.
  private var ended: Set<Int> = []
  /// Connections that are new, that systemd has no place for, or whose message could not be sent.
  private var unkept: Set<Int> = []
  /// The next attempt; `nil` when there is nothing to do or nothing can be done.
  private(set) var due: ContinuousClock.Instant?
  /// systemd's queue was full, and what waits for it has not all been sent.
  private var isCongested = false
  /// Whether the problem was logged, which is done once until there is none.
  private var hasLogged = false

  /// Until the next attempt; it doubles with each that meets a full queue.
  private var delay = Keeping.firstDelay
  private static let firstDelay = Duration.milliseconds(250)
  private static let longestDelay = Duration.seconds(5)
  /// How long systemd's queue may be full before the rest is sent later.
  private static let patience = Duration.seconds(1)
  /// How long a connection must have lasted to be kept.
  static let probation = Duration.seconds(1)
  /// How many are kept in one attempt.
  static let batch = 32
  /// How many that have ended are removed in one attempt: they had been kept, so they can't be many for long.
  private static let endedBatch = 256

  init(_ preservation: Preservation) { self.preservation = preservation }

  /// Has systemd keep a connection once it has lasted. One without a place is served all the same, and kept later if
  /// possible.
  func add(_ connection: Connection) {
    guard !connection.isPreserved, preservation.limit > 0 else { return }
    unkept.insert(connection.id)
    if preservation.room <= 1 { report(full(StoredName.connection(connection.id))) }
    schedule()
  }

  /// Has systemd keep a connection now, for the next run, even if it is new, or systemd has not taken the messages before
  /// it.
  ///
  /// - Returns: Whether systemd has it.
  func keep(_ connection: Connection, timeout: Duration) -> Bool {
    if connection.isPreserved || preservation.limit == 0 { return connection.isPreserved }
    defer { schedule() }
    return store(connection, timeout: timeout)
  }

  private func store(_ connection: Connection, timeout: Duration) -> Bool {
    let name = StoredName.connection(connection.id)
    do throws(SystemdError) {
      guard preservation.room > 1 else { throw full(name) }
      try preservation.preserve(connection.socket, named: name, timeout: timeout)
      connection.isPreserved = true
      unkept.remove(connection.id)
    } catch {
      unkept.insert(connection.id)
      report(error)
    }
    return connection.isPreserved
  }

  /// One place is the state's.
  private func full(_ name: String) -> SystemdError {
    .storeFull(name: name, limit: preservation.limit)
  }

  /// Has systemd remove its duplicate of a connection that is about to be closed. If that fails, the peer receives the
  /// end all the same, and the removal is tried again.
  func giveUp(_ connection: Connection) {
    unkept.remove(connection.id)
    if connection.isPreserved, isCongested || !forget(connection.id, timeout: Self.patience) {
      // Of the connection, not of this descriptor: systemd's duplicate can't keep it open.
      shutdown(connection.socket, Int32(SHUT_RDWR))
      ended.insert(connection.id)
    }
    schedule()
  }

  /// Sends what is due, and tries again what has failed.
  func work(_ connections: [Int: Connection], at now: ContinuousClock.Instant) {
    guard let due, due <= now else { return }
    self.due = nil
    isCongested = false
    removeEnded()
    if !isCongested { keepOld(connections, at: now) }
    delay = isCongested ? min(delay * 2, Self.longestDelay) : Self.firstDelay
    schedule()
  }

  private func removeEnded() {
    for id in ended.prefix(Self.endedBatch) {
      guard forget(id, timeout: .zero) else { return }
      ended.remove(id)
    }
  }

  private func keepOld(_ connections: [Int: Connection], at now: ContinuousClock.Instant) {
    // The oldest first.
    for id in unkept.sorted().prefix(Self.batch) {
      guard let connection = connections[id], connection.accepted + Self.probation <= now,
        store(connection, timeout: .zero)
      else { return }
    }
  }

  private func forget(_ id: Int, timeout: Duration) -> Bool {
    do {
      try preservation.forget(named: StoredName.connection(id), timeout: timeout)
      return true
    } catch {
      report(error)
      return false
    }
  }

  /// A full store has room again only when a connection ends, which calls this.
  private func schedule() {
    if ended.isEmpty, unkept.isEmpty { hasLogged = false }
    let canDo = !ended.isEmpty || (!unkept.isEmpty && preservation.room > 1)
    if !canDo { (due, isCongested) = (nil, false) } else if due == nil { due = .now + delay }
  }

  /// A full queue of systemd is reported only when it stays full.
  private func report(_ error: SystemdError) {
    if case .storeFull = error {} else { isCongested = true }
    if delay < .seconds(1), case .system(_, EAGAIN) = error { return }
    if !hasLogged { say("\(error)", .warning) }
    hasLogged = true
  }
}
