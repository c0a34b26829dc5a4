// SPDX-License-Identifier: Apache-2.0
/// One client: its socket and its conversation. Used on the loop's thread only.
final class Connection {
  /// Its number, which it keeps over restarts.
  let id: Int
  let socket: Int32
  var conversation: Conversation
  /// When this run accepted it, or took it over.
  let accepted = ContinuousClock.now
  /// systemd has a duplicate, which has to be removed before the socket is closed.
  var isPreserved: Bool
  /// Our side has ended. Until this time, or until the peer is silent, input is read and dropped: closing a socket that
  /// has unread input would take the last answers from the peer.
  private(set) var lingerEnd: ContinuousClock.Instant?
  /// The peer has ended its side.
  private(set) var hasPeerEnded = false
  /// The time of the last input, or from which on silence counts.
  private var lastInput = ContinuousClock.now
  /// Until when a peer that is never silent is read from. Data that waits in the sockets, on either side, gives more
  /// time.
  private var readUntil = ContinuousClock.now
  /// It had not taken its answers when it was last to end.
  private var isBehind = false

  init(id: Int, socket: Int32, conversation: Conversation = Conversation(), isPreserved: Bool) {
    self.id = id
    self.socket = socket
    self.conversation = conversation
    self.isPreserved = isPreserved
  }

  /// The events to wait for. There is always one: a peer that is not read from has output to take.
  var events: Int16 {
    let input = lingerEnd != nil ? !hasPeerEnded : conversation.wantsInput
    return Int16(input ? POLLIN : 0) | Int16(conversation.output.isEmpty ? 0 : POLLOUT)
  }

  /// The result of a read.
  enum Finding { case bytes, nothing, end, gone }

  /// Reads once, without waiting, and answers what it can.
  func read(_ buffer: inout [UInt8], _ settings: Settings) -> Finding {
    let count = recv(socket, &buffer, buffer.count, 0)
    if count < 0 {
      return errno == EAGAIN || errno == EINTR ? .nothing : .gone
    }
    if count == 0 {
      hasPeerEnded = true
      conversation.receiveEnd(settings)
      return .end
    }
    lastInput = .now
    // More may wait in the socket that was sent long ago.
    if count == buffer.count { readUntil = lastInput + Self.patience }
    // While lingering the conversation is over, and this does nothing.
    conversation.receive(buffer[..<count], settings)
    return .bytes
  }

  /// Sends what the socket takes without waiting; false when the peer is gone.
  func flush(_ settings: Settings) -> Bool {
    while !conversation.output.isEmpty {
      let count = conversation.output.withUnsafeBytes {
        send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count < 0, errno == EINTR { continue }
      if count < 0 { return errno == EAGAIN }
      conversation.sent(count, settings)
    }
    return true
  }

  // MARK: The end

  /// Silence of this length means that nothing more is on its way.
  private static let silence = Duration.milliseconds(250)
  /// How long a peer that goes on sending is read from.
  private static let patience = Duration.seconds(1)

  /// The connection should end when it is idle: from now on silence counts.
  func beginLeaving() {
    isBehind = false
    lastInput = .now
    readUntil = lastInput + Self.patience
  }

  /// When a connection is to end.
  enum Leaving {
    /// When it is idle: silent, and without half a line.
    case whenIdle
    /// When it is silent; half lines are dropped. A peer that is never silent is read from for a second, and one with
    /// more data than can be read at once until the last call.
    case soon(lastCall: ContinuousClock.Instant)

    /// The time after the last call is for taking the answers.
    static func soon(within time: Duration) -> Leaving {
      .soon(lastCall: .now + max(time / 2, time - .seconds(2)))
    }
  }

  /// Ends the conversation once all that was sent has arrived, as far as that can be known, and is answered.
  func leave(_ leaving: Leaving, at now: ContinuousClock.Instant) {
    guard conversation.output.isEmpty else {
      isBehind = true
      return
    }
    // A peer that was behind was not read from: silence begins now.
    if isBehind { beginLeaving() }
    let isSilent = now >= lastInput + Self.silence
    switch leaving {
    case .whenIdle: if isSilent, conversation.input.isEmpty { conversation.end() }
    case .soon(let lastCall):
      if isSilent || now >= min(readUntil, lastCall) { conversation.end() }
    }
  }

  /// Ends our side once all is answered: the peer receives the end after the last answer.
  ///
  /// - Returns: Whether the connection is to be closed.
  func endIfOver(at now: ContinuousClock.Instant) -> Bool {
    if let lingerEnd {
      return hasPeerEnded || now >= lingerEnd || now >= lastInput + Self.patience
    }
    guard conversation.isOver, conversation.output.isEmpty else { return false }
    if hasPeerEnded { return true }
    shutdown(socket, Int32(SHUT_WR))
    lastInput = now
    lingerEnd = now + .seconds(10)
    return false
  }

  /// When there is something to do without input; `nil`: never.
  func due(_ leaving: Leaving?) -> ContinuousClock.Instant? {
    if let lingerEnd { return min(lingerEnd, lastInput + Self.patience) }
    guard let leaving, conversation.output.isEmpty else { return nil }
    if case .whenIdle = leaving, !conversation.input.isEmpty { return nil }
    return lastInput + Self.silence
  }
}
