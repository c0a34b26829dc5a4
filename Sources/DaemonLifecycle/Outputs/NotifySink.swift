// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

/// The output to systemd, over the notify socket.
///
/// On a subject it never waits: what can't be sent at once, because the service manager's queue is full or the
/// process has no descriptor or memory left, stays in a queue in order and is tried again until it is sent, on the
/// listening thread. In a mock, which has no such thread, it waits for the fake service manager to read.
final class NotifySink: LifecycleSink {
  private struct State {
    var status = ServiceStatus()
    var queue = NotifyQueue()
    var backoff = Backoff(longest: .seconds(1))
    /// The time since which nothing could be sent; `nil` while sending works.
    var stuckSince: MonotonicTime?
    /// The last error, so that it is logged once.
    var lastError: SystemdError?
  }

  /// The time after which a waiting message is worth a warning.
  private static let patience = Duration.seconds(30)

  private let socket: NotifySocket
  private let timeout: Duration
  private let state = Mutex(State())
  private let warn: @Sendable (String) -> Void

  /// - Parameter waits: Whether it waits for a service manager whose queue is full.
  init(
    _ socket: NotifySocket, waits: Bool = false, warn: @escaping @Sendable (String) -> Void
  ) {
    self.socket = socket
    timeout = waits ? Self.patience : .zero
    self.warn = warn
  }

  var isServiceManager: Bool { true }

  @discardableResult func receive(_ fact: LifecycleFact) -> MonotonicTime? {
    let clock = WallClock.now()
    return state.withLock { state in
      let fields = state.status.fields(for: fact, at: clock)
      if fields.isEmpty { return nil }
      state.queue.append(fields)
      return send(&state)
    }
  }

  func tryAgain() -> MonotonicTime? {
    state.withLock { state in
      state.backoff.begin()
      return send(&state)
    }
  }

  /// Sends what can be sent now. Returns when the rest is to be tried.
  private func send(_ state: inout State) -> MonotonicTime? {
    while let fields = state.queue.first {
      do throws(SystemdError) {
        try socket.send(fields, timeout: timeout)
        (state.stuckSince, state.lastError) = (nil, nil)
      } catch {
        guard !error.isPassing else {
          noteDelay(error, &state)
          return state.backoff.nextAttempt()
        }
        note(error, &state)
      }
      state.queue.removeFirst()
    }
    state.backoff.succeed()
    return nil
  }

  // MARK: Errors

  private func note(_ error: SystemdError, _ state: inout State) {
    guard state.lastError != error else { return }
    state.lastError = error
    warn("systemd was not notified: \(error)")
  }

  private func noteDelay(_ error: SystemdError, _ state: inout State) {
    let now = MonotonicTime.now()
    let since = state.stuckSince ?? now
    state.stuckSince = since
    guard since.duration(to: now) >= Self.patience, state.lastError != error else { return }
    state.lastError = error
    warn(
      "systemd could not be notified for \(Self.patience.forReading); the daemon keeps trying: \(error)"
    )
  }
}

extension SystemdError {
  /// Whether sending should be tried again: the manager's queue is full, or there is no descriptor, buffer or memory.
  fileprivate var isPassing: Bool {
    switch self {
    case .system(_, EAGAIN), .system(_, ENOBUFS): true
    default: isShortage
    }
  }
}
