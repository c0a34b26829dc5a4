import DaemonSystemd
import Synchronization

/// What systemd is about to do with this service, since only the job tells a restart from a stop: asked when the
/// termination begins, and once more at its end when it looks like a kill.
final class UnitJobReader: BusFollower {
  /// Where systemd is asked, from `begin` on. Weak: the session holds what asks.
  private struct Question {
    weak var session: BusSession?
    let item: BusSession.Item
  }

  private let question = Mutex<Question?>(nil)

  func begin(on session: BusSession, _ inbox: BusInbox) {
    let item = session.follow(.unitJob) { answer in
      // Without a bus nobody knows, which is an answer of its own.
      inbox.put(.unitJob((try? answer.get())?.text.map { UnitJob($0) }))
      return true
    }
    question.withLock { $0 = Question(session: session, item: item) }
  }

  func receive(_ fact: LifecycleFact) {
    switch fact {
    case .terminating, .seemsKilled:
      guard let question = question.withLock({ $0 }) else { return }
      question.session?.ask(question.item)
    default: break
    }
  }
}
