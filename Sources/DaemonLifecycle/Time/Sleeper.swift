// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A task that sleeps, or an action for later, which may be scheduled repeatedly.
package final class Sleeper: Sendable {
  private enum State {
    /// Not waiting yet. Becomes `waiting`, or `ended` when it is cancelled before.
    case new
    /// Waiting. Becomes `ended`.
    case waiting(CheckedContinuation<Void, any Error>)
    case ended((any Error)?)
  }
  private let state = Mutex<State>(.new)
  /// Its index in the queue of its core; `nil` when it is in none. Guarded by the core's lock.
  nonisolated(unsafe) var place: Int?

  /// Called in place of a task when the time has come, on the listening thread.
  private let action: (@Sendable () -> Void)?

  package init(_ action: (@Sendable () -> Void)? = nil) { self.action = action }

  /// Begins to wait. Returns false when the sleep has already ended.
  package func wait(_ continuation: CheckedContinuation<Void, any Error>) -> Bool {
    let ended: (any Error)?? = state.withLock { state in
      if case .ended(let error) = state { return .some(error) }
      state = .waiting(continuation)
      return nil
    }
    guard let ended else { return true }
    if let ended { continuation.resume(throwing: ended) } else { continuation.resume() }
    return false
  }

  package var hasEnded: Bool { state.withLock { if case .ended = $0 { true } else { false } } }

  /// Ends the sleep, or does the action unless there is an error. Returns true when a task was waiting.
  @discardableResult package func end(throwing error: (any Error)? = nil) -> Bool {
    if let action {
      if error == nil { action() }
      return false
    }
    let continuation: CheckedContinuation<Void, any Error>? = state.withLock { state in
      switch state {
      case .new:
        state = .ended(error)
        return nil
      case .waiting(let continuation):
        state = .ended(error)
        return continuation
      case .ended: return nil
      }
    }
    guard let continuation else { return false }
    if let error { continuation.resume(throwing: error) } else { continuation.resume() }
    return true
  }
}
