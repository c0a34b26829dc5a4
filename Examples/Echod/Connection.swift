import Foundation

/// One client: its socket and what is said on it. Belongs to the loop's thread.
final class Connection {
  /// Its number for life, over restarts too.
  let id: Int
  let socket: Int32
  var conversation: Conversation
  /// systemd has a duplicate: it has to be told before the socket is closed.
  var isPreserved: Bool
  /// Our side has ended, and until then the peer may read what is on its way: closing a socket that has unread input
  /// would take the last answers from it.
  var lingerEnd: ContinuousClock.Instant?
  /// The peer has ended its side.
  private(set) var hasPeerEnded = false

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

  /// Ends our side once all is said: the peer gets its end after the last answer.
  ///
  /// - Returns: Whether the connection is to be closed.
  func endIfOver(at now: ContinuousClock.Instant) -> Bool {
    if let lingerEnd { return hasPeerEnded || now >= lingerEnd }
    guard conversation.isOver, conversation.output.isEmpty else { return false }
    if hasPeerEnded { return true }
    shutdown(socket, Int32(SHUT_WR))
    lingerEnd = now + .seconds(1)
    return false
  }
}
