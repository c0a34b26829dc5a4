// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// What systemd keeps of the connections. Belongs to the loop's thread, which waits for a systemd that does not answer
/// once, and not again: from then on all that systemd is to be told is told later, until it has taken everything.
///
/// A connection is kept once it has lasted a second, and so many in a second and no more: a message costs systemd's
/// process 1 about half a millisecond, and it hears messages before everything else. Clients that do nothing but connect
/// could otherwise keep it from answering anybody on the whole machine.
final class Keeping {
  let preservation: Preservation
  /// Connections that have ended, which systemd has still to be told of.
  private var given: Set<Int> = []
  /// Connections that are young, that systemd has no place for, or could not be told of.
  private var unkept: Set<Int> = []
  /// The next attempt; `nil` when there is nothing to do or nothing can be done.
  private(set) var due: ContinuousClock.Instant?
  /// systemd's queue was full, and what waits for it has not all been sent.
  private var isCongested = false
  /// What is wrong is said once, until nothing is.
  private var hasSaid = false

  /// Until the next attempt; it doubles with each that meets a full queue.
  private var delay = Keeping.firstDelay
  private static let firstDelay = Duration.milliseconds(250)
  private static let longestDelay = Duration.seconds(5)
  /// How long systemd's queue may be full before the rest is told later.
  private static let patience = Duration.seconds(1)
  /// How long a connection has lasted when it is kept.
  static let probation = Duration.seconds(1)
  /// So many are kept in one attempt.
  static let batch = 32
  /// So many that have ended are told of in one attempt: they had been kept, so they can't be many for long.
  private static let endedBatch = 256

  init(_ preservation: Preservation) { self.preservation = preservation }

  /// Has systemd keep a connection once it has lasted; one that it has no place for is served all the same, and kept
  /// later if it can be.
  func add(_ connection: Connection) {
    guard !connection.isPreserved, preservation.limit > 0 else { return }
    unkept.insert(connection.id)
    if preservation.room <= 1 { report(full(StoredName.connection(connection.id))) }
    schedule()
  }

  /// Has systemd keep a connection now, for the next run: tried even if it is young, or systemd has not taken what came
  /// before.
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

  /// Has systemd give up its duplicate of a connection that is about to be closed. Should that fail, its peer gets its end
  /// all the same, and it is tried again.
  func giveUp(_ connection: Connection) {
    unkept.remove(connection.id)
    if connection.isPreserved, isCongested || !forget(connection.id, timeout: Self.patience) {
      // Of the connection, not of this descriptor: systemd's duplicate can't keep it open.
      shutdown(connection.socket, Int32(SHUT_RDWR))
      given.insert(connection.id)
    }
    schedule()
  }

  /// Does what is to be done, and what has failed again, if it is time to.
  func work(_ connections: [Int: Connection], at now: ContinuousClock.Instant) {
    guard let due, due <= now else { return }
    self.due = nil
    isCongested = false
    tellOfEnded()
    if !isCongested { keepOld(connections, at: now) }
    delay = isCongested ? min(delay * 2, Self.longestDelay) : Self.firstDelay
    schedule()
  }

  private func tellOfEnded() {
    for id in given.prefix(Self.endedBatch) {
      guard forget(id, timeout: .zero) else { return }
      given.remove(id)
    }
  }

  private func keepOld(_ connections: [Int: Connection], at now: ContinuousClock.Instant) {
    // Who came first is kept first.
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

  /// A full store has room again only when a connection ends, which comes here.
  private func schedule() {
    if given.isEmpty, unkept.isEmpty { hasSaid = false }
    let canDo = !given.isEmpty || (!unkept.isEmpty && preservation.room > 1)
    if !canDo { (due, isCongested) = (nil, false) } else if due == nil { due = .now + delay }
  }

  /// That systemd's queue is full is nothing to report, unless it stays so.
  private func report(_ error: SystemdError) {
    if case .storeFull = error {} else { isCongested = true }
    if delay < .seconds(1), case .system(_, EAGAIN) = error { return }
    if !hasSaid { say("\(error)", .warning) }
    hasSaid = true
  }
}
