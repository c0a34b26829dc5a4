// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

/// The output to systemd, over the notify socket.
///
/// On a subject it never waits: a message that can't be sent at once, because the service manager's queue is full or
/// the process has no descriptor or memory left, stays in a queue in order, and the listening thread tries it until it
/// is sent. In a mock, which has no such thread, it waits for the fake service manager to read.
final class NotifySink: LifecyclePart {
  private struct State {
    var status: ServiceStatus
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
  private let state: Mutex<State>
  private let warn: @Sendable (String) -> Void

  /// - Parameters:
  ///   - waits: Whether it waits for a service manager whose queue is full.
  ///   - pings: Whether it pings the watchdog when the daemon is healthy.
  init(
    _ socket: NotifySocket, waits: Bool = false, pings: Bool = true,
    warn: @escaping @Sendable (String) -> Void
  ) {
    self.socket = socket
    state = Mutex(State(status: ServiceStatus(pings: pings)))
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

  func wake(_: (SourceInput) -> Void) -> MonotonicTime? {
    state.withLock { state in
      state.backoff.grow()
      return send(&state)
    }
  }

  /// Sends what can be sent now. Returns the time at which to try the rest.
  private func send(_ state: inout State) -> MonotonicTime? {
    while let fields = state.queue.first {
      do throws(SystemdError) {
        try socket.send(fields, timeout: timeout)
        (state.stuckSince, state.lastError) = (nil, nil)
      } catch {
        note(error, &state)
        if error.isTemporary { return state.backoff.nextAttempt }
      }
      state.queue.removeFirst()
    }
    state.backoff.reset()
    return nil
  }

  /// Warns of an error once; of a temporary one only after nothing could be sent for a while.
  private func note(_ error: SystemdError, _ state: inout State) {
    var text = "systemd was not notified:"
    if error.isTemporary {
      let now = MonotonicTime.now()
      let since = state.stuckSince ?? now
      state.stuckSince = since
      guard since.duration(to: now) >= Self.patience else { return }
      let time = Self.patience.forReading
      text = "systemd could not be notified for \(time); the daemon keeps trying:"
    }
    guard state.lastError != error else { return }
    state.lastError = error
    warn("\(text) \(error)")
  }
}

extension LifecycleInterface {
  /// systemd's notifications and its watchdog.
  ///
  /// `READY=1`, `RELOADING=1`, `STOPPING=1` and `EXTEND_TIMEOUT_USEC=` are sent, and in `STATUS=` the state, its time and
  /// cause, the progress of a slow stop, and problems. Source: sd_notify(3).
  ///
  /// - Parameter watchdog: Whether the watchdog of `WatchdogSec=` is pinged, as long as Swift's global executor, the
  ///   main actor (where anything runs on it) and the observers' `checkHealth` hooks respond. Default true. All are
  ///   checked every three quarters of `WatchdogSec=`, and after a failure once more, three eighths of it later:
  ///   systemd ends a hanging daemon after at most one and a half times `WatchdogSec=`.
  public static func serviceManager(watchdog: Bool = true) -> Self {
    Self("service manager", .service) { wiring in
      // A malformed address is among the problems of the environment.
      guard wiring.isSupervised, let address = try? wiring.environment.notifySocket else { return }
      let period = watchdog ? try? wiring.environment.watchdogPeriod : nil
      do throws(SystemdError) {
        wiring.parts.append(
          NotifySink(
            try NotifySocket(address: address), pings: period != nil, warn: wiring.warn))
      } catch { return wiring.note("\(error) No service manager is notified.") }
      if let period {
        wiring.checkHealth(within: period, "The watchdog's period (WATCHDOG_USEC, WatchdogSec=)")
      }
    }
  }
}

extension SystemdError {
  /// Whether sending should be tried again: the manager's queue is full, or there is no descriptor, buffer or memory.
  fileprivate var isTemporary: Bool {
    switch self {
    case .system(_, EAGAIN), .system(_, ENOBUFS): true
    default: isShortage
    }
  }
}
