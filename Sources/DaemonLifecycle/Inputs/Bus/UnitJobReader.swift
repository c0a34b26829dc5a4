// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The reader of systemd's job for this service, which distinguishes a restart from a stop. It is read when the
/// termination begins.
final class UnitJobReader: BusFollower {
  private let question = BusQuestion()

  func begin(on session: BusSession, _ inbox: BusInbox) {
    let item = session.follow(.unitJob) { answer in
      // Without a bus the job is unknown, which is a reply too.
      inbox.put(.unitJob((try? answer.get())?.text.map { UnitJob($0) }))
      return true
    }
    question.begin(item, on: session)
  }

  func receive(_ fact: LifecycleFact) {
    if case .terminating = fact { question.ask() }
  }
}
