// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// What systemd is about to do with this service, since only the job tells a restart from a stop: asked when the
/// termination begins, and once more at its end when it looks like a kill.
final class UnitJobReader: BusFollower {
  private let question = BusQuestion()

  func begin(on session: BusSession, _ inbox: BusInbox) {
    let item = session.follow(.unitJob) { answer in
      // Without a bus nobody knows, which is an answer of its own.
      inbox.put(.unitJob((try? answer.get())?.text.map { UnitJob($0) }))
      return true
    }
    question.begin(item, on: session)
  }

  func receive(_ fact: LifecycleFact) {
    switch fact {
    case .terminating, .seemsKilled: question.ask()
    default: break
    }
  }
}
