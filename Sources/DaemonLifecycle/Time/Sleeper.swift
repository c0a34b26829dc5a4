// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// A task that sleeps, or an action for later, which may be scheduled repeatedly.
package final class Sleeper: Sendable {
  private enum State {
    /// Not waiting yet. Becomes `waiting`, or `ended` when it is ended before.
    case new
    /// Waiting. Becomes `ended`.
    case waiting(CheckedContinuation<Void, any Error>)
    case ended((any Error)?)
  }
  private let state = Mutex<State>(.new)

  /// Its entry in the queue of a core. It is a part of this object, since an array of another type would cost a start
  /// as much as 50 sleeps.
  struct Queued {
    let deadline: MonotonicTime
    /// The number of sleepers added before.
    let number: UInt64
    /// Its index in the queue.
    var place: Int

    static func < (a: Queued, b: Queued) -> Bool {
      a.deadline == b.deadline ? a.number < b.number : a.deadline < b.deadline
    }
  }
  /// `nil` when it is in no queue. Guarded by the core's lock.
  nonisolated(unsafe) var queued: Queued?

  /// Whether the task that made it continues on Swift's pool.
  let isOfPool: Bool
  /// Called when the time has come, on the listening thread, instead of a resumption of a task.
  private let action: (@Sendable () -> Void)?

  package init(_ action: (@Sendable () -> Void)? = nil) {
    self.action = action
    isOfPool = action == nil && isOfSwiftPool()
  }

  /// Waits until it is ended.
  ///
  /// - Parameter begin: Called as the wait begins, unless the sleep has ended before.
  package nonisolated(nonsending) func wait(
    begin: () -> Void = {}, onCancel: @Sendable () -> Void
  ) async throws {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { if wait($0) { begin() } }
    } onCancel: {
      onCancel()
    }
  }

  /// Begins to wait. Returns false when the sleep has already ended.
  ///
  /// - Parameter continuation: Resumed once, as this becomes `ended`. A checked one, whose hand-over the thread
  ///   sanitizer knows: of an unsafe one it falsely reports a race in users' own tests.
  private func wait(_ continuation: CheckedContinuation<Void, any Error>) -> Bool {
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
  ///
  /// Out of line: a daemon without sleeps does not make the continuation's type, which takes 0.05 ms.
  @discardableResult @inline(never) package func end(throwing error: (any Error)? = nil) -> Bool {
    if let action {
      if error == nil { action() }
      return false
    }
    let continuation: CheckedContinuation<Void, any Error>? = state.withLock { state in
      if case .ended = state { return nil }
      defer { state = .ended(error) }
      return if case .waiting(let continuation) = state { continuation } else { nil }
    }
    guard let continuation else { return false }
    if let error { continuation.resume(throwing: error) } else { continuation.resume() }
    return true
  }
}
