import CLinux
import DaemonSystemd
import Synchronization

/// Tells systemd what the lifecycle does, over the notify socket.
///
/// Never waits: what can't be sent at once, because the service manager's queue is full or the process has no
/// descriptor or memory left, stays in a queue in order and is tried again until it is sent. On this machine a timer of
/// the listening thread does that, which needs neither a thread nor a descriptor. Over vsock, where each message waits
/// for its connection, a thread of its own does, which ends when all is said; so too where there is no timer, as in a
/// mock.
final class NotifySink: LifecycleSink, RetryTimer.Client {
  private struct State {
    var status: ServiceStatus
    /// What has not been sent.
    var queue = NotifyQueue()
    /// A thread is about to send what waits: nobody else sends then.
    var hasThread = false
    /// Since when nothing could be sent; `nil` while it can.
    var stuckSince: MonotonicTime?
    /// What went wrong last, so that it is said once.
    var lastError: SystemdError?
  }

  /// Something that has waited for so long is worth a warning.
  private static let patience = Duration.seconds(30)

  private let socket: NotifySocket
  private let state: Mutex<State>
  private let warn: @Sendable (String) -> Void
  /// Tries again; a source of the subject's.
  let retries = RetryTimer(longest: .seconds(1))

  /// - Parameter warn: Gets a sentence when the service manager can't be told.
  init(
    _ socket: NotifySocket, sendsStatus: Bool, warn: @escaping @Sendable (String) -> Void
  ) {
    self.socket = socket
    self.warn = warn
    state = Mutex(State(status: ServiceStatus(sendsStatus: sendsStatus)))
    retries.client = self
  }

  var isServiceManager: Bool { true }

  func receive(_ fact: LifecycleFact) {
    let clock = WallClock.now()
    let isSent = state.withLock { state in
      let fields = state.status.fields(for: fact, at: clock)
      if fields.isEmpty { return true }
      state.queue.append(fields)
      return state.hasThread || socket.isLocal && sendWaiting(&state)
    }
    if !isSent { sendLater() }
  }

  // MARK: On the caller's thread

  /// Sends what can be sent without waiting; whether that was all.
  private func sendWaiting(_ state: inout State) -> Bool {
    while let fields = state.queue.first {
      do throws(SystemdError) {
        try socket.send(fields, timeout: .zero)
        noteSuccess(&state)
      } catch {
        guard !error.isPassing else {
          noteDelay(error, &state)
          return false
        }
        note(error, &state)
      }
      _ = state.queue.removeFirst()
    }
    return true
  }

  private func sendLater() {
    if socket.isLocal, retries.begin() { return }
    // Without a thread the timer, if there is one, comes back to this.
    if !sendInBackground() { retries.begin() }
  }

  func tryAgain() -> Bool {
    guard socket.isLocal else { return sendInBackground() }
    return state.withLock { $0.hasThread || sendWaiting(&$0) }
  }

  // MARK: On a thread of its own

  /// False when there is no thread to be had.
  private func sendInBackground() -> Bool {
    let isNeeded = state.withLock { state in
      guard !state.hasThread, !state.queue.isEmpty else { return false }
      state.hasThread = true
      return true
    }
    guard isNeeded else { return true }
    let began = Thread.spawn(named: "lifecycle-sd") { [self] in
      while let fields = next() { sendWaiting(fields) }
    }
    if !began { state.withLock { $0.hasThread = false } }
    return began
  }

  /// Taken out, so that nothing newer is put into what is being sent.
  private func next() -> [NotifyField]? {
    state.withLock { state in
      guard !state.queue.isEmpty else {
        state.hasThread = false
        return nil
      }
      return state.queue.removeFirst()
    }
  }

  private func sendWaiting(_ fields: [NotifyField]) {
    var pause: Int32 = 10
    while true {
      do throws(SystemdError) {
        try socket.send(fields, timeout: Self.patience)
        return state.withLock { noteSuccess(&$0) }
      } catch {
        guard error.isPassing else { return state.withLock { note(error, &$0) } }
        state.withLock { noteDelay(error, &$0) }
        if case .timedOut = error { continue }
        poll(nil, 0, pause)
        pause = min(pause * 2, 1000)
      }
    }
  }

  // MARK: What went wrong

  private func note(_ error: SystemdError, _ state: inout State) {
    guard state.lastError != error else { return }
    state.lastError = error
    warn("systemd was not told: \(error)")
  }

  private func noteDelay(_ error: SystemdError, _ state: inout State) {
    let now = MonotonicTime.now()
    let since = state.stuckSince ?? now
    state.stuckSince = since
    guard since.duration(to: now) >= Self.patience, state.lastError != error else { return }
    state.lastError = error
    warn(
      "systemd could not be told for \(Self.patience.inSeconds) s, and it is tried again: \(error)")
  }

  private func noteSuccess(_ state: inout State) {
    state.stuckSince = nil
    state.lastError = nil
  }
}

extension SystemdError {
  /// Worth trying again: the manager's queue is full, or there is no descriptor, buffer or memory. A connection over
  /// vsock is not there in time.
  fileprivate var isPassing: Bool {
    switch self {
    case .timedOut: true
    case .system(_, EAGAIN), .system(_, ENOBUFS): true
    default: isShortage
    }
  }
}
