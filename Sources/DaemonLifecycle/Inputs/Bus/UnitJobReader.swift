import DaemonSystemd
import Synchronization

/// What systemd is about to do with this service: asked once, when the termination begins, since only the job
/// tells a restart from a stop.
final class UnitJobReader: BusFollower {
  private struct State {
    var session: BusSession?
    var inbox: BusInbox?
  }

  private let state = Mutex(State())

  func begin(on session: BusSession, _ inbox: BusInbox) {
    state.withLock { state in (state.session, state.inbox) = (session, inbox) }
  }

  func receive(_ fact: LifecycleFact) {
    guard case .terminating = fact else { return }
    let (session, inbox) = state.withLock { ($0.session, $0.inbox) }
    guard let session, let inbox else { return }
    Systemd1(session).ownJob { answer in
      // Without a bus nobody knows, which is an answer of its own.
      inbox.put(.unitJob((try? answer.get()) ?? nil))
    }
  }
}
