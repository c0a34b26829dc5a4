// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd
import FoundationEssentials

/// What this run begins with: sockets to listen on, and the connections of the run before.
struct Restored {
  var listeners: [Int32] = []
  /// The listener was bound here, and not by systemd.
  var listensItself = false
  /// Those that go on, by number.
  var connections: [Int: Connection] = [:]
  var nextID = 1

  /// Takes everything over that systemd has passed; what this version does not know is closed and removed.
  ///
  /// - Parameter address: Where to listen if no socket was passed.
  /// - Throws: What must not be guessed: a listener of the wrong kind, for instance.
  init(_ lifecycle: any LifecycleObservable, listenAt address: String) throws {
    let preservation = try lifecycle.preservation()
    try takeConnections(preservation, try Self.handover(lifecycle))
    try takeListeners(preservation, address)
    // Nothing was read yet, so a crash before this leaves the next run all of it; after it, it would double bytes.
    try preservation.forget(named: StoredName.state)
    for name in try preservation.closeUnknown() {
      say("closed \"\(name)\", which is unknown", .warning)
    }
  }

  /// Without it the connections go on as after a crash: without their half lines and unsent answers.
  private static func handover(_ lifecycle: any LifecycleObservable) throws -> Handover? {
    do {
      let bytes = try lifecycle.preservation().preservedBytes(
        named: StoredName.state, limit: Int(Int32.max))
      return try bytes.map { try JSONDecoder().decode(Handover.self, from: Data($0)) }
    } catch SystemdError.system(let purpose, let number) {
      throw SystemdError.system(purpose: purpose, errno: number)
    } catch {
      say(
        "what the last run has handed over can't be read, so half lines are lost: \(error)", .error)
      return nil
    }
  }

  private mutating func takeConnections(
    _ preservation: Preservation, _ handover: Handover?
  ) throws {
    nextID = handover?.nextID ?? 1
    for name in preservation.names(prefix: "c") {
      guard let id = StoredName.id(name) else { continue }
      do throws(SystemdError) {
        guard let socket = try preservation.preserved(named: name, as: .stream) else { continue }
        Sockets.makeReady(socket.rawValue)
        connections[id] = Connection(
          id: id, socket: socket.release(),
          conversation: handover?.conversations[id] ?? Conversation(), isPreserved: true)
        nextID = max(nextID, id + 1)
      } catch {
        say("\(error)", .warning)  // it is closed with what is unknown
      }
    }
  }

  private mutating func takeListeners(_ preservation: Preservation, _ address: String) throws {
    for name in [StoredName.listener, StoredName.ownListener] {
      while let listener = try preservation.preserved(named: name, as: .listeningStream) {
        listeners.append(listener.release())
      }
      guard listeners.isEmpty else { break }
      listensItself = true
    }
    if listeners.isEmpty { listeners = [try Sockets.listener(at: address)] }
    for listener in listeners { Sockets.makeReady(listener) }
    // So that no client is refused during a restart, though no socket unit listens.
    if listensItself, preservation.limit > 0 {
      try preservation.forget(named: StoredName.ownListener)
      try preservation.preserve(listeners[0], named: StoredName.ownListener)
    }
  }
}
