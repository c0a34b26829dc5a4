// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Tells whether the main actor runs what it is given: a class's hook that waits may be waiting for it, and Swift has
/// no way to ask.
///
/// A beacon is a job on the main actor, enqueued before the hook: while it is unanswered, a hook that is isolated to
/// the main actor can't have begun. At most one is on its way.
final class MainActorBeacon: Sendable {
  private struct State {
    /// The number of the last beacon; one more than `answered` while it is on its way.
    var sent: UInt64 = 0
    var answered: UInt64 = 0
    /// What the last caller is to be told when the beacon that is on its way is answered; earlier callers have given
    /// up.
    var waiting: (@Sendable () -> Void)?
  }
  private let state = Mutex(State())

  /// Sends a beacon, unless one is on its way.
  ///
  /// - Parameter onAnswer: Called on the main actor, unless another caller takes its place before the answer.
  /// - Returns: The number of a beacon that is ahead of all that the main actor is given from now on; 0 when none was
  ///   sent, since there is no thread to be had for it.
  @discardableResult func send(_ onAnswer: (@Sendable () -> Void)? = nil) -> UInt64 {
    guard DispatchThreads.canBeHad else { return 0 }
    let (number, isNew) = state.withLock { state in
      if let onAnswer { state.waiting = onAnswer }
      guard state.sent == state.answered else { return (state.sent, false) }
      state.sent += 1
      return (state.sent, true)
    }
    if isNew { Task.detached { @MainActor in self.answer(number) } }
    return number
  }

  private func answer(_ number: UInt64) {
    DispatchThreads.noteHad()
    let waiting = state.withLock { state in
      state.answered = number
      return state.waiting.take()
    }
    waiting?()
  }

  func isAnswered(_ number: UInt64) -> Bool { state.withLock { $0.answered >= number } }

  /// For tests: as if the main actor had answered once, and were busy from now on.
  func seemBusy() {
    state.withLock { state in
      state.answered = max(state.answered, 1)
      state.sent = state.answered + 1_000_000
    }
  }

  /// The main actor has answered before; false where nothing ever drains its queue.
  var hasEverAnswered: Bool { state.withLock { $0.answered > 0 } }
}
