import DaemonLifecycleFoundation
import DaemonSystemd
import Foundation

extension Loop {
  /// What was handed over.
  struct Handed: Sendable {
    var connections = 0
    var bytes = 0
    /// How those have ended for which the store had no place.
    var unkept = Ending()
  }

  /// Leaves every connection to the next run: the sockets, most of which systemd has already, and what is half said on
  /// them. Those that systemd has no place for are finished.
  ///
  /// From here on nothing is read: what has not been read waits in the sockets, for the next run.
  ///
  /// - Parameters:
  ///   - answersFirst: Whether to answer what has come, for the case that there is no next run.
  ///   - reply: Told of success when the loop has ended; of what kept the state from being stored at once: then all go
  ///     on, and should be finished.
  func handOver(
    answersFirst: Bool, _ reply: @escaping @Sendable (Result<Handed, any Error>) -> Void
  ) {
    enter(.quiet)
    if answersFirst {
      acceptTheLast()
      answerWhatHasCome()
    }
    var handed = Handed()
    var handover = Handover(nextID: nextID, conversations: [:])
    var kept: [Connection] = []
    // For all of them together: a systemd that does not answer now must not take the time that saving needs.
    let end = ContinuousClock.now + .seconds(2)
    // Who came first is kept first.
    for connection in connections.values.sorted(by: { $0.id < $1.id }) {
      guard connection.flush(settings), !connection.endIfOver(at: .now) else {
        self.end(connection)
        continue
      }
      guard keeping.keep(connection, timeout: max(.zero, end - .now)) else { continue }
      kept.append(connection)
      let conversation = connection.conversation
      if conversation == Conversation() { continue }
      handed.bytes += conversation.input.count + conversation.output.count
      handover.conversations[connection.id] = conversation
    }
    do {
      try keeping.preservation.preserve(value: handover, named: StoredName.state)
      // Before systemd has read all of this, exiting could lose it.
      try keeping.preservation.barrier(timeout: .seconds(5))
    } catch {
      return reply(.failure(error))
    }
    for connection in kept { leave(connection) }
    handed.connections = kept.count
    let result = handed
    finish(by: .now + .seconds(2)) { ending in
      var handed = result
      handed.unkept = ending
      reply(.success(handed))
    }
  }
}
