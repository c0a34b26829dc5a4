import DaemonSystemd
import Synchronization

/// What systemd is about to do with this service, since only the job tells a restart from a stop: asked when the
/// termination begins, and once more at its end when it looks like a kill.
final class UnitJobReader: BusFollower {
  private let bus = Mutex<(session: BusSession, inbox: BusInbox)?>(nil)

  func begin(on session: BusSession, _ inbox: BusInbox) -> [any Sendable] {
    bus.withLock { $0 = (session, inbox) }
    return []
  }

  func receive(_ fact: LifecycleFact) {
    switch fact {
    case .terminating, .seemsKilled: ask()
    default: break
    }
  }

  private func ask() {
    guard let (session, inbox) = bus.withLock({ $0 }) else { return }
    Systemd1(session).ownJob { answer in
      // Without a bus nobody knows, which is an answer of its own.
      inbox.put(.unitJob((try? answer.get()) ?? nil))
    }
  }
}
