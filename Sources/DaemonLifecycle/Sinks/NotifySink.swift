import CLinux
import Synchronization
import Systemd

/// Tells systemd what the lifecycle does, over the notify socket.
///
/// Never waits: where the service manager's queue is full, what is to be said goes, in order, to a thread
/// of its own, which ends when all of it is said.
final class NotifySink: LifecycleSink {
  private struct State {
    var status: ServiceStatus
    /// What waits for room in the service manager's queue, the oldest first.
    var waiting: [[NotifyField]] = []
    /// A thread is about to send what waits.
    var hasThread = false
    /// What went wrong last, so that it is said once.
    var lastError: SystemdError?
  }

  private let socket: NotifySocket
  private let state: Mutex<State>
  private let complain: @Sendable (String) -> Void

  /// - Parameter complain: Gets a sentence when the service manager can't be told.
  init(
    _ socket: NotifySocket, sendsStatus: Bool, complain: @escaping @Sendable (String) -> Void
  ) {
    self.socket = socket
    self.complain = complain
    state = Mutex(State(status: ServiceStatus(sendsStatus: sendsStatus)))
  }

  var isServiceManager: Bool { true }

  func hear(_ fact: LifecycleFact) {
    let clock = WallClock.now()
    let startsThread = state.withLock { state in
      let fields = state.status.fields(for: fact, at: clock)
      return !fields.isEmpty && !sendNow(fields, &state)
    }
    if startsThread { sendInBackground() }
  }

  /// False when a thread is needed for what waits.
  private func sendNow(_ fields: [NotifyField], _ state: inout State) -> Bool {
    guard state.waiting.isEmpty, !state.hasThread else {
      state.waiting.append(fields)
      // There was no thread to be had before: try again, behind what waits.
      defer { state.hasThread = true }
      return state.hasThread
    }
    do throws(SystemdError) {
      try socket.send(fields, timeout: .zero)
      state.lastError = nil
    } catch {
      if Self.isFull(error) {
        state.waiting.append(fields)
        state.hasThread = true
        return false
      }
      note(error, &state)
    }
    return true
  }

  private func note(_ error: SystemdError, _ state: inout State) {
    guard state.lastError != error else { return }
    state.lastError = error
    complain("systemd was not told: \(error)")
  }

  private func sendInBackground() {
    let began = Thread.spawn(named: "lifecycle-sd") { [self] in
      while let fields = next() { sendWaiting(fields) }
    }
    if !began { state.withLock { $0.hasThread = false } }
  }

  /// A stuck service manager loses a status and a ping, but never what it waits for.
  private func sendWaiting(_ fields: [NotifyField]) {
    while true {
      do throws(SystemdError) {
        try socket.send(fields, timeout: .seconds(30))
        return
      } catch {
        state.withLock { note(error, &$0) }
        let isAwaited = fields.contains { field in
          switch field {
          case .ready, .reloading, .stopping: true
          default: false
          }
        }
        if !Self.isFull(error) || !isAwaited { return }
      }
    }
  }

  /// The service manager's queue has no room. A stream (vsock) says so by not being ready in time.
  private static func isFull(_ error: SystemdError) -> Bool {
    switch error {
    case .system(_, EAGAIN), .timedOut: true
    default: false
    }
  }

  private func next() -> [NotifyField]? {
    state.withLock { state in
      guard !state.waiting.isEmpty else {
        state.hasThread = false
        return nil
      }
      return state.waiting.removeFirst()
    }
  }
}
