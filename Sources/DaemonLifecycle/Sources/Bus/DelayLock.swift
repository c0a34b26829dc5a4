import Synchronization
import Systemd

/// A delay lock of logind's: taken before it is needed, let go of when the work before a sleep or a shutdown
/// is done, and taken again after.
final class DelayLock: Sendable {
  private struct State {
    var lock: InhibitorLock?
    /// logind was asked for one and has not answered.
    var isAsking = false
    /// The sleep or shutdown has been announced: a lock that is granted only now could only delay what nobody
    /// waits for.
    var isTooLate = false
  }

  private let operation: InhibitorLock.Operations
  private let state = Mutex(State())

  init(_ operation: InhibitorLock.Operations) { self.operation = operation }

  var isHeld: Bool { state.withLock { $0.lock != nil } }

  /// What the lock is for has been announced, or is over.
  func setAnnounced(_ isAnnounced: Bool) { state.withLock { $0.isTooLate = isAnnounced } }

  /// Asks for the lock, unless it is held or asked for. The answer comes on the listening thread.
  func take(
    _ login: Login1, _ completion: @escaping @Sendable (Result<Void, BusError>) -> Void
  ) {
    let asks = state.withLock { state in
      guard state.lock == nil, !state.isAsking else { return false }
      state.isAsking = true
      return true
    }
    guard asks else { return }
    login.inhibit(operation, who: Journal.programName, why: "Saves its state") {
      [weak self] answer in
      self?.state.withLock { state in
        state.isAsking = false
        if case .success(let lock) = answer, !state.isTooLate { state.lock = lock }
      }
      completion(answer.map { _ in })
    }
  }

  /// Lets go of it, if it is held.
  func release() {
    let lock = state.withLock { $0.lock.take() }
    lock?.release()
  }
}
