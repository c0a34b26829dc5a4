import DaemonSystemd
import Foundation

/// Serves all clients on one thread with poll(2). Everything here belongs to that thread.
///
/// poll, since it asks anew each time: an epoll goes on reporting a socket that was closed here as long as systemd has
/// a duplicate of it, so there one has to be taken out before it is closed.
final class Loop {
  enum Phase {
    /// Serves whom it has, and accepts nobody.
    case quiet
    case serving
    /// As quiet, and each connection ends when it is idle.
    case draining
    /// As draining, and half lines are not waited for; what is not over at the end is cut off.
    case finishing(lastCall: ContinuousClock.Instant, until: ContinuousClock.Instant)
    case ended
  }

  private(set) var phase = Phase.quiet
  var settings: Settings
  var connections: [Int: Connection] = [:]
  private(set) var nextID: Int
  /// Told once all connections have ended in `finishing`.
  private var whenFinished: (@Sendable (Ending) -> Void)?
  /// After a failure, or without a descriptor to spare: nobody is accepted until then, or until a connection ends. The
  /// listener would be ready all the time.
  private var acceptsAgain: ContinuousClock.Instant?
  /// That clients wait for a descriptor is said once, until nobody waits.
  private var hasSaidCrowded = false

  let keeping: Keeping
  private let listeners: [Int32]
  /// They are ours alone: who waits behind them waits for this run.
  private let listensItself: Bool
  private let mailbox: Mailbox
  private var buffer = [UInt8](repeating: 0, count: 16 * 1024)

  /// How the connections have ended.
  struct Ending: Sendable {
    var finished = 0
    /// Those that did not take all of their answers in time.
    var cutOff = 0
  }
  private var ending = Ending()

  init(_ restored: Restored, _ settings: Settings, _ preservation: Preservation, _ mailbox: Mailbox)
  {
    listeners = restored.listeners
    listensItself = restored.listensItself
    nextID = restored.nextID
    self.settings = settings
    keeping = Keeping(preservation)
    self.mailbox = mailbox
    for kept in restored.connections {
      Sockets.makeReady(kept.socket)
      connections[kept.id] = Connection(
        id: kept.id, socket: kept.socket, conversation: kept.conversation, isPreserved: true)
    }
  }

  deinit {
    for connection in connections.values { close(connection.socket) }
    for listener in listeners { close(listener) }
  }

  // MARK: The loop

  func run() {
    // Another run may have left answers, or lines for which there was no room.
    for connection in connections.values { advance(connection) }
    while true {
      for command in mailbox.take() { command.run(self) }
      if case .ended = phase { return }
      round()
    }
  }

  private func round() {
    let now = ContinuousClock.now
    if let again = acceptsAgain, now >= again { acceptsAgain = nil }
    let heard = acceptsAgain == nil && isServing ? listeners : []
    let polled = Array(connections.values)
    var polls = [pollfd(fd: mailbox.wake, events: Int16(POLLIN), revents: 0)]
    polls += heard.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    polls += polled.map { pollfd(fd: $0.socket, events: $0.events, revents: 0) }
    guard poll(&polls, nfds_t(polls.count), timeout(now)) >= 0 else { return }
    if polls[0].revents != 0 { mailbox.drain() }
    // Connections first: their numbers are those that were polled.
    for (connection, poll) in zip(polled, polls.dropFirst(1 + heard.count)) where poll.revents != 0
    {
      serve(connection, poll.revents)
    }
    for (listener, poll) in zip(heard, polls.dropFirst()) where poll.revents != 0 {
      accept(from: listener)
    }
    passTime()
  }

  private var isServing: Bool { if case .serving = phase { true } else { false } }

  private var leaving: Connection.Leaving? {
    switch phase {
    case .draining: .whenIdle
    case .finishing(let lastCall, _): .soon(lastCall: lastCall)
    case .quiet, .serving, .ended: nil
    }
  }

  /// Milliseconds until something is due; -1: nothing is.
  private func timeout(_ now: ContinuousClock.Instant) -> Int32 {
    let leaving = leaving
    var due = connections.values.compactMap { $0.due(leaving) }.min()
    if let again = acceptsAgain { due = min(due ?? again, again) }
    if case .finishing(_, let end) = phase { due = min(due ?? end, end) }
    if let again = keeping.due { due = min(due ?? again, again) }
    guard let due else { return -1 }
    return Int32(clamping: Int((max(.zero, due - now) / .milliseconds(1)).rounded(.up)))
  }

  private func passTime() {
    let now = ContinuousClock.now
    let leaving = leaving
    keeping.work(connections, at: now)
    for connection in connections.values {
      if let due = connection.due(leaving), due <= now { advance(connection) }
    }
    guard case .finishing(_, let end) = phase else { return }
    if now >= end {
      for connection in connections.values {
        if connection.lingerEnd == nil { ending.cutOff += 1 }
        self.end(connection)
      }
    }
    if connections.isEmpty { endFinishing() }
  }

  // MARK: Connections

  /// So many at a time, for the sake of those who are there already: how many it were. None while the descriptors that
  /// are left are the daemon's own: clients wait in the kernel's queue, and are accepted as others leave.
  @discardableResult
  private func accept(from listener: Int32) -> Int {
    let limit = DescriptorLimit.current
    guard limit.hasRoom(besides: listener) else {
      waitForRoom()
      return 0
    }
    for count in 0..<64 {
      do throws(SystemError) {
        guard let socket = try Sockets.accept(listener) else {
          hasSaidCrowded = false
          return count
        }
        let connection = Connection(id: nextID, socket: socket, isPreserved: false)
        nextID += 1
        connections[connection.id] = connection
        // Soon, and not at the end: so it outlives a crash too.
        keeping.add(connection)
        if !limit.isForClients(socket) { return count + 1 }
      } catch {
        say("\(error) Nobody is accepted for a second.")
        acceptsAgain = .now + .seconds(1)
        return count
      }
    }
    return 64
  }

  /// A second, since the limit may be raised, and the daemon may need less for itself.
  private func waitForRoom() {
    acceptsAgain = .now + .seconds(1)
    if !hasSaidCrowded {
      say("\(connections.count) connections are all that LimitNOFILE= allows; who comes waits.")
    }
    hasSaidCrowded = true
  }

  private func serve(_ connection: Connection, _ events: Int16) {
    let reads = connection.events & Int16(POLLIN) != 0
    if reads, Int32(events) & (POLLIN | POLLHUP | POLLERR) != 0 {
      if connection.read(&buffer, settings) == .gone { return end(connection) }
    }
    advance(connection)
  }

  /// Does all for a connection that can be done without waiting.
  private func advance(_ connection: Connection) {
    guard connection.flush(settings) else { return end(connection) }
    let now = ContinuousClock.now
    if let leaving { connection.leave(leaving, at: now) }
    if connection.endIfOver(at: now) { end(connection) }
  }

  /// Hangs up: systemd's duplicate goes first, or the peer would not notice.
  func end(_ connection: Connection) {
    guard connections.removeValue(forKey: connection.id) != nil else { return }
    keeping.giveUp(connection)
    close(connection.socket)
    if hasSaidCrowded { acceptsAgain = nil }
  }

  // MARK: Commands

  func enter(_ phase: Phase) {
    self.phase = phase
    for connection in connections.values {
      connection.beginLeaving()
      advance(connection)
    }
  }

  /// Answers what has come, sends what is to be sent, and ends all connections, or cuts them off at the end.
  func finish(by end: ContinuousClock.Instant, _ reply: @escaping @Sendable (Ending) -> Void) {
    whenFinished = reply
    ending = Ending(finished: connections.count)
    // What is left is for taking the answers.
    let now = ContinuousClock.now
    let lastCall = max(now + (end - now) / 2, end - .seconds(2))
    enter(.finishing(lastCall: lastCall, until: end))
    if connections.isEmpty { endFinishing() }
  }

  /// Accepts who waits behind a socket that goes with this run; a socket unit's keeps them for the next.
  func acceptTheLast() {
    if listensItself { for listener in listeners { while accept(from: listener) == 64 {} } }
  }

  private func endFinishing() {
    phase = .ended
    ending.finished -= ending.cutOff
    whenFinished?(ending)
    whenFinished = nil
  }

  /// Answers what has come, once.
  func answerWhatHasCome() {
    for connection in connections.values {
      for _ in 0..<64 where connection.lingerEnd == nil && connection.conversation.wantsInput {
        guard connection.read(&buffer, settings) == .bytes else { break }
        guard connection.flush(settings) else { break }
      }
    }
  }

  /// Lets go of a connection that the next run has.
  func leave(_ connection: Connection) {
    connections[connection.id] = nil
    close(connection.socket)
  }

  func stop() { phase = .ended }
}
