// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A check whether the main actor runs its jobs: a class's hook that has suspended may be waiting for it, and Swift
/// offers no way to find out.
///
/// A beacon is a job on the main actor, enqueued before the hook: until it has run, a hook that is isolated to the main
/// actor can't have begun. At most one is pending.
final class MainActorBeacon: Sendable {
  private struct State {
    /// The number of the last beacon; one more than `answered` while it is pending.
    var sent: UInt64 = 0
    var answered: UInt64 = 0
    /// Called when the pending beacon has run; set by the last caller, since earlier ones no longer wait.
    var waiting: (@Sendable () -> Void)?
  }
  private let state = Mutex(State())

  /// Sends a beacon, unless one is pending.
  ///
  /// - Parameter onAnswer: Called on the main actor, unless another caller takes its place before the answer.
  /// - Returns: The number of a beacon that precedes all later jobs of the main actor; 0 when none was sent, since no
  ///   thread is available for it.
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

  /// Simulates, for tests, a main actor that has responded once and is busy from now on.
  func seemBusy() {
    state.withLock { state in
      state.answered = max(state.answered, 1)
      state.sent = state.answered + 1_000_000
    }
  }

  /// Whether the main actor has ever responded; false where nothing runs its queue.
  var hasEverAnswered: Bool { state.withLock { $0.answered > 0 } }
}
