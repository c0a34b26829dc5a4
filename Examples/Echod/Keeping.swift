import DaemonSystemd
import Foundation

/// What systemd keeps of the connections. Belongs to the loop's thread, which waits for a systemd that does not answer
/// once, and not again: from then on all that systemd is to be told is told later, until it has taken everything.
final class Keeping {
  let preservation: Preservation
  /// Connections that have ended, which systemd has still to be told of.
  private var given: Set<Int> = []
  /// Connections that systemd has no place for, or could not be told of.
  private var unkept: Set<Int> = []
  /// The next attempt; `nil` when there is nothing to do or nothing can be done.
  private(set) var due: ContinuousClock.Instant?
  /// systemd's queue was full, and what waits for it has not all been sent.
  private var isCongested = false
  /// What is wrong is said once, until nothing is.
  private var hasSaid = false

  /// Until the next attempt; it doubles with each that comes to nothing.
  private var delay = Keeping.firstDelay
  private static let firstDelay = Duration.milliseconds(100)
  private static let longestDelay = Duration.seconds(5)
  /// How long systemd's queue may be full before the rest is told later.
  private static let patience = Duration.seconds(1)
  /// So many in one attempt, for the sake of those who are served.
  private static let attempts = 256

  init(_ preservation: Preservation) { self.preservation = preservation }

  /// Has systemd keep a connection; one that it has no place for is served all the same, and kept later if it can be.
  ///
  /// - Returns: Whether systemd has it.
  @discardableResult
  func keep(_ connection: Connection) -> Bool {
    guard isCongested, !connection.isPreserved, preservation.limit > 0 else {
      return keep(connection, timeout: Self.patience)
    }
    unkept.insert(connection.id)
    schedule()
    return false
  }

  /// As `keep(_:)`, for the last time: tried even if systemd has not taken what came before.
  func keep(_ connection: Connection, timeout: Duration) -> Bool {
    if connection.isPreserved || preservation.limit == 0 { return connection.isPreserved }
    defer { schedule() }
    return store(connection, timeout: timeout)
  }

  private func store(_ connection: Connection, timeout: Duration) -> Bool {
    let name = StoredName.connection(connection.id)
    do throws(SystemdError) {
      // One place is the state's.
      guard preservation.room > 1 else {
        throw .storeFull(name: name, limit: preservation.limit)
      }
      try preservation.preserve(connection.socket, named: name, timeout: timeout)
      connection.isPreserved = true
      unkept.remove(connection.id)
    } catch {
      unkept.insert(connection.id)
      report(error)
    }
    return connection.isPreserved
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

  /// Does again what has failed, if it is time to.
  func retry(_ connections: [Int: Connection], at now: ContinuousClock.Instant) {
    guard let due, due <= now else { return }
    self.due = nil
    let count = given.count + unkept.count
    isCongested = false
    retryGiven()
    if !isCongested { retryUnkept(connections) }
    delay =
      given.count + unkept.count < count ? Self.firstDelay : min(delay * 2, Self.longestDelay)
    schedule()
  }

  private func retryGiven() {
    for id in given.prefix(Self.attempts) {
      guard forget(id, timeout: .zero) else { return }
      given.remove(id)
    }
  }

  private func retryUnkept(_ connections: [Int: Connection]) {
    // Who came first is kept first.
    for id in unkept.sorted().prefix(Self.attempts) where preservation.room > 1 {
      if let connection = connections[id], !store(connection, timeout: .zero) { return }
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
    if !hasSaid { say("\(error)") }
    hasSaid = true
  }
}
