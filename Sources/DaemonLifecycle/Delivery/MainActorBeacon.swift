import Synchronization

/// Tells whether the main actor runs what it is given: a class's hook that waits may be waiting for it,
/// and Swift can't be asked.
///
/// A beacon is a job on the main actor, enqueued before the hook: while it is unanswered, a hook that is
/// isolated to the main actor can't have begun. At most one is on its way.
final class MainActorBeacon: Sendable {
  private let state = Mutex<(sent: UInt64, answered: UInt64)>((0, 0))

  /// The number of a beacon that is ahead of all that the main actor is given from now on.
  func send() -> UInt64 {
    let (number, isNew) = state.withLock { state in
      guard state.sent == state.answered else { return (state.sent, false) }
      state.sent += 1
      return (state.sent, true)
    }
    if isNew {
      Task.detached { @MainActor in self.state.withLock { $0.answered = number } }
    }
    return number
  }

  func isAnswered(_ number: UInt64) -> Bool { state.withLock { $0.answered >= number } }

  /// The main actor has run something before; false also where nothing ever drains its queue.
  var hasEverAnswered: Bool { state.withLock { $0.answered > 0 } }
}
