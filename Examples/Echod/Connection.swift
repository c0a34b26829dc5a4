// SPDX-License-Identifier: Apache-2.0
/// One client: its socket and what is said on it. Belongs to the loop's thread.
final class Connection {
  /// Its number for life, over restarts too.
  let id: Int
  let socket: Int32
  var conversation: Conversation
  /// When this run has got it.
  let accepted = ContinuousClock.now
  /// systemd has a duplicate: it has to be told before the socket is closed.
  var isPreserved: Bool
  /// Our side has ended, and what comes is read and dropped until then, or until the peer is silent: closing a socket
  /// that has unread input would take the last answers from the peer.
  private(set) var lingerEnd: ContinuousClock.Instant?
  /// The peer has ended its side.
  private(set) var hasPeerEnded = false
  /// When something has come, or has been waited for from then on.
  private var lastHeard = ContinuousClock.now
  /// When a peer that never is silent has been heard long enough. What waits in the sockets, on either side, gives
  /// more time.
  private var hearUntil = ContinuousClock.now
  /// It has not taken its answers yet, when we last wanted it to end.
  private var isBehind = false

  init(id: Int, socket: Int32, conversation: Conversation = Conversation(), isPreserved: Bool) {
    self.id = id
    self.socket = socket
    self.conversation = conversation
    self.isPreserved = isPreserved
  }

  /// What to wait for. Nothing at all is right for a reader that is slow in reading, but then there is output.
  var events: Int16 {
    let input = lingerEnd != nil ? !hasPeerEnded : conversation.wantsInput
    return Int16(input ? POLLIN : 0) | Int16(conversation.output.isEmpty ? 0 : POLLOUT)
  }

  /// What a read has found.
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
    lastHeard = .now
    // There may be more of it, that was sent long ago.
    if count == buffer.count { hearUntil = lastHeard + Self.patience }
    // While lingering it is over, and this does nothing.
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
  /// Who goes on sending is heard for so long.
  private static let patience = Duration.seconds(1)

  /// It is to end when it is idle: from now on silence counts.
  func beginLeaving() {
    isBehind = false
    lastHeard = .now
    hearUntil = lastHeard + Self.patience
  }

  /// When a connection is to end.
  enum Leaving {
    /// When it is idle: silent, and without half a line.
    case whenIdle
    /// When it is silent; half lines are dropped. Who is never silent is heard for a second, who has more to say than
    /// can be read at once until the last call.
    case soon(lastCall: ContinuousClock.Instant)

    /// What is left of the time after the last call is for taking the answers.
    static func soon(within time: Duration) -> Leaving {
      .soon(lastCall: .now + max(time / 2, time - .seconds(2)))
    }
  }

  /// Ends the conversation once all that has been sent has come, as far as one can know, and is answered.
  func leave(_ leaving: Leaving, at now: ContinuousClock.Instant) {
    guard conversation.output.isEmpty else {
      isBehind = true
      return
    }
    // Who was behind was not listened to: silence begins now.
    if isBehind { beginLeaving() }
    let isSilent = now >= lastHeard + Self.silence
    switch leaving {
    case .whenIdle: if isSilent, conversation.input.isEmpty { conversation.end() }
    case .soon(let lastCall):
      if isSilent || now >= min(hearUntil, lastCall) { conversation.end() }
    }
  }

  /// Ends our side once all is said: the peer gets its end after the last answer.
  ///
  /// - Returns: Whether the connection is to be closed.
  func endIfOver(at now: ContinuousClock.Instant) -> Bool {
    if let lingerEnd {
      return hasPeerEnded || now >= lingerEnd || now >= lastHeard + Self.patience
    }
    guard conversation.isOver, conversation.output.isEmpty else { return false }
    if hasPeerEnded { return true }
    shutdown(socket, Int32(SHUT_WR))
    lastHeard = now
    lingerEnd = now + .seconds(10)
    return false
  }

  /// When there is something to do though nothing comes; `nil`: never.
  func due(_ leaving: Leaving?) -> ContinuousClock.Instant? {
    if let lingerEnd { return min(lingerEnd, lastHeard + Self.patience) }
    guard let leaving, conversation.output.isEmpty else { return nil }
    if case .whenIdle = leaving, !conversation.input.isEmpty { return nil }
    return lastHeard + Self.silence
  }
}
