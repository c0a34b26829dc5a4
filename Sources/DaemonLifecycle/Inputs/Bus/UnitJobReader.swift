import DaemonSystemd
import Synchronization

/// What systemd is about to do with this service: asked once, when the termination begins, since only the job
/// tells a restart from a stop.
final class UnitJobReader: BusFollower {
  private let asked = Mutex<(session: BusSession, inbox: BusInbox)?>(nil)

  func begin(on session: BusSession, _ inbox: BusInbox) -> [any Sendable] {
    asked.withLock { $0 = (session, inbox) }
    return []
  }

  func receive(_ fact: LifecycleFact) {
    guard case .terminating = fact, let (session, inbox) = asked.withLock({ $0 }) else { return }
    Systemd1(session).ownJob { answer in
      // Without a bus nobody knows, which is an answer of its own.
      inbox.put(.unitJob((try? answer.get()) ?? nil))
    }
  }
}
