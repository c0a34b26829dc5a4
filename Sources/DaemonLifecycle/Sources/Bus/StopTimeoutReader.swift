import Synchronization
import Systemd

/// How long systemd waits for a stop of this service: read once, with the first connection.
final class StopTimeoutReader: BusFollower {
  private let state = Mutex<(connections: BusWatch?, isKnown: Bool)>((nil, false))

  func begin(on session: BusSession, _ inbox: BusInbox) {
    let manager = Systemd1(session)
    let connections = session.observe(
      BusSessionObserver(
        connected: { [weak self] _ in self?.ask(manager, inbox) },
        disconnected: { inbox.complain($0, without: "TimeoutStopSec=") }))
    state.withLock { $0.connections = connections }
  }

  private func ask(_ manager: Systemd1, _ inbox: BusInbox) {
    if state.withLock({ $0.isKnown }) { return }
    manager.timeoutStop { [weak self] answer in
      switch answer {
      case .success(let timeout):
        self?.state.withLock { $0.isKnown = true }
        inbox.put(.stopTimeout(timeout ?? .seconds(Int64.max)))
      case .failure(let error): inbox.complain(error, without: "TimeoutStopSec=")
      }
    }
  }
}
