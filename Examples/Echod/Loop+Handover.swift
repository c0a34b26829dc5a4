// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import FoundationEssentials

extension Loop {
  /// Leaves every connection to the next run: the sockets, most of which systemd has already, with their half lines and
  /// unsent answers. Those that systemd has no place for are finished.
  ///
  /// From here on nothing is read: unread input waits in the sockets for the next run.
  ///
  /// - Parameter answersFirst: Whether to answer input first, in case there is no next run.
  /// - Returns: How many of those without a place were cut off; `nil` when the state could not be stored: then all go on.
  func handOver(answersFirst: Bool) async -> Int? {
    enter(.quiet)
    if answersFirst {
      acceptTheLast()
      answerInput()
    }
    var handover = Handover(nextID: nextID, conversations: [:])
    var kept: [Connection] = []
    // For all of them together: waiting for systemd must not take the time that the save needs.
    let end = ContinuousClock.now + .seconds(2)
    // The oldest first.
    for connection in connections.values.sorted(by: { $0.id < $1.id }) {
      guard connection.flush(settings), !connection.endIfOver(at: .now) else {
        self.end(connection)
        continue
      }
      guard keeping.keep(connection, timeout: max(.zero, end - .now)) else { continue }
      kept.append(connection)
      let conversation = connection.conversation
      if conversation != Conversation() { handover.conversations[connection.id] = conversation }
    }
    do {
      try keeping.preservation.preserve(
        [UInt8](JSONEncoder().encode(handover)), named: StoredName.state)
      // Before systemd has read all of this, exiting could lose it.
      try keeping.preservation.barrier(timeout: .seconds(5))
    } catch {
      say("\(error) So the connections are finished instead.", .warning)
      return nil
    }
    for connection in kept { leave(connection) }
    let bytes = handover.conversations.values.map { $0.input.count + $0.output.count }.reduce(0, +)
    say("handed over \(kept.count) connections, \(bytes) bytes")
    await letAllLeave(.soon(within: .seconds(2)), within: .seconds(2))
    return cutOff()
  }
}
