// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// Serves all clients on one thread (`LoopThread`) with poll(2).
///
/// poll, which is given its sockets each time: an epoll goes on reporting a socket that was closed here as long as
/// systemd has a duplicate of it.
actor Loop {
  enum Phase {
    /// Serves its clients, and accepts no new ones.
    case quiet
    case serving
    /// As quiet, and each connection ends.
    case leaving(Connection.Leaving)
  }

  private var phase = Phase.quiet
  var settings: Settings
  var connections: [Int: Connection]
  private(set) var nextID: Int
  /// After a failure, or without a free descriptor: no client is accepted until then, or until a connection ends,
  /// though the listener is ready.
  private var acceptsAgain: ContinuousClock.Instant?
  /// Whether it was logged that clients wait for a descriptor, which is done once until none waits.
  private var hasLoggedCrowd = false

  let keeping: Keeping
  private let listeners: [Int32]
  /// Whether the listeners are this run's own: their clients wait for this run.
  private let listensItself: Bool
  private var buffer = [UInt8](repeating: 0, count: 16 * 1024)

  /// `letAllLeave` waits until the last connection has ended, or until this time.
  private var drainer: CheckedContinuation<Void, Never>?
  private var drainLimit: ContinuousClock.Instant?

  private let thread: LoopThread
  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }
  /// The sockets that the thread waits for; none is closed between `nextWait` and `serve`.
  private var awaited: (connections: [Connection], listeners: [Int32]) = ([], [])

  init(
    _ restored: sending Restored, _ settings: Settings, _ preservation: Preservation
  ) throws(SystemError) {
    thread = try LoopThread()
    listeners = restored.listeners
    listensItself = restored.listensItself
    nextID = restored.nextID
    connections = restored.connections
    self.settings = settings
    keeping = Keeping(preservation)
    try thread.start { [weak self] in self }
  }

  /// All connections have ended by now, or the process does.
  deinit {
    for listener in listeners { close(listener) }
    thread.endWait()
  }

  // MARK: Waiting, for the thread

  /// The sockets to wait for, and how long until something is due; -1: nothing is.
  func nextWait() -> (sockets: [pollfd], milliseconds: Int32) {
    let now = ContinuousClock.now
    if let again = acceptsAgain, now >= again { acceptsAgain = nil }
    let accepts = if case .serving = phase { acceptsAgain == nil } else { false }
    awaited = (Array(connections.values), accepts ? listeners : [])
    var sockets = awaited.connections.map { pollfd(fd: $0.socket, events: $0.events, revents: 0) }
    for reader in awaited.listeners + [thread.wake.rawValue] {
      sockets.append(pollfd(fd: reader, events: Int16(POLLIN), revents: 0))
    }
    let leaving = leaving
    let all =
      connections.values.map { $0.due(leaving) } + [acceptsAgain, drainLimit, keeping.due]
    guard let due = all.compactMap(\.self).min() else { return (sockets, -1) }
    let milliseconds = (max(.zero, due - now) / .milliseconds(1)).rounded(.up)
    return (sockets, Int32(clamping: Int(milliseconds)))
  }

  func serve(_ sockets: [pollfd]) {
    // Connections first: their numbers are those that were polled.
    for (connection, socket) in zip(awaited.connections, sockets) where socket.revents != 0 {
      serve(connection, socket.revents)
    }
    let rest = sockets.dropFirst(awaited.connections.count)
    for (listener, socket) in zip(awaited.listeners, rest) where socket.revents != 0 {
      accept(from: listener)
    }
    passTime()
  }

  private var leaving: Connection.Leaving? {
    if case .leaving(let leaving) = phase { leaving } else { nil }
  }

  private func passTime() {
    let now = ContinuousClock.now
    let leaving = leaving
    keeping.work(connections, at: now)
    for connection in connections.values {
      if let due = connection.due(leaving), due <= now { advance(connection) }
    }
    if let drainLimit, now >= drainLimit { endDraining() }
  }

  // MARK: Connections

  /// Accepts a limited number at a time, so that the others are served too, and returns how many. None while only the
  /// reserved descriptors are left: clients wait in the kernel's queue, and are accepted as others leave.
  @discardableResult
  private func accept(from listener: Int32) -> Int {
    let limit = DescriptorLimit.current
    guard limit.hasRoom(besides: listener) else {
      waitForRoom()
      return 0
    }
    for count in 0..<64 {
      do throws(SystemError) {
        guard let socket = try Sockets.nextClient(of: listener) else {
          hasLoggedCrowd = false
          return count
        }
        let connection = Connection(id: nextID, socket: socket, isPreserved: false)
        nextID += 1
        connections[connection.id] = connection
        // Soon, and not only at the end, so that it survives a crash too.
        keeping.add(connection)
        if !limit.isForClients(socket) { return count + 1 }
      } catch {
        say("\(error) Nobody is accepted for a second.", .error)
        acceptsAgain = .now + .seconds(1)
        return count
      }
    }
    return 64
  }

  /// Only for a second: the limit may be raised, and the daemon may need less for itself.
  private func waitForRoom() {
    acceptsAgain = .now + .seconds(1)
    if !hasLoggedCrowd {
      say(
        "\(connections.count) connections are all that LimitNOFILE= allows: new clients wait.",
        .warning)
    }
    hasLoggedCrowd = true
  }

  private func serve(_ connection: Connection, _ events: Int16) {
    let reads = connection.events & Int16(POLLIN) != 0
    if reads, Int32(events) & (POLLIN | POLLHUP | POLLERR) != 0 {
      if connection.read(&buffer, settings) == .gone { return end(connection) }
    }
    advance(connection)
  }

  /// Does everything for a connection that needs no wait.
  private func advance(_ connection: Connection) {
    guard connection.flush(settings) else { return end(connection) }
    let now = ContinuousClock.now
    if let leaving { connection.leave(leaving, at: now) }
    if connection.endIfOver(at: now) { end(connection) }
  }

  /// Closes a connection: systemd's duplicate is removed first, or the peer would not notice.
  func end(_ connection: Connection) {
    guard connections.removeValue(forKey: connection.id) != nil else { return }
    keeping.giveUp(connection)
    close(connection.socket)
    if hasLoggedCrowd { acceptsAgain = nil }
    if connections.isEmpty { endDraining() }
  }

  // MARK: For the hooks

  /// How many clients there are. An answer shows that the loop works.
  var count: Int { connections.count }

  func apply(_ settings: Settings) { self.settings = settings }

  func enter(_ phase: Phase) {
    self.phase = phase
    for connection in connections.values {
      connection.beginLeaving()
      advance(connection)
    }
  }

  /// Lets each connection end when its input is answered. Returns when all have ended, the limit is over, or the
  /// calling task is cancelled.
  func letAllLeave(_ leaving: Connection.Leaving, within limit: Duration? = nil) async {
    endDraining()
    drainLimit = limit.map { .now + $0 }
    enter(.leaving(leaving))
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        drainer = continuation
        if connections.isEmpty { endDraining() }
      }
    } onCancel: {
      Task { await endDraining() }
    }
  }

  private func endDraining() {
    drainLimit = nil
    drainer?.resume()
    drainer = nil
  }

  /// Ends all connections now. Returns how many lack answers.
  func cutOff() -> Int {
    let late = connections.values.count { $0.lingerEnd == nil }
    for connection in connections.values { end(connection) }
    return late
  }

  /// Accepts the clients that wait at a socket which ends with this run; a socket unit keeps them for the next.
  func acceptTheLast() {
    if listensItself { for listener in listeners { while accept(from: listener) == 64 {} } }
  }

  /// Answers the input that is there, once.
  func answerInput() {
    for connection in connections.values {
      for _ in 0..<64 where connection.lingerEnd == nil && connection.conversation.wantsInput {
        guard connection.read(&buffer, settings) == .bytes else { break }
        guard connection.flush(settings) else { break }
      }
    }
  }

  /// Closes this run's socket of a connection that the next run has.
  func leave(_ connection: Connection) {
    connections[connection.id] = nil
    close(connection.socket)
  }
}
