// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The machine's sleep, held back by a delay lock until the hooks have ended, where logind grants one.
///
/// Without a lock (it takes root or polkit, and a logind that is there) the hooks run all the same; the machine just
/// does not wait for them.
final class SleepFollower: BusFollower {
  private struct State {
    /// From the announcement of a sleep until the machine is awake again.
    var isAsleep = false
    var delay = Duration.seconds(5)
  }

  private let state = Mutex(State())
  private let lock = DelayLock(
    .sleep, .delayLock, consequence: "a suspend does not wait for the hooks")

  func begin(on session: BusSession, _ inbox: BusInbox) {
    lock.begin(on: session, inbox)
    session.follow(.delayLimit) { [weak self] answer in self?.take(limit: answer) ?? true }
    session.follow(.sleep) { [weak self] news in
      self?.take(news, inbox)
      return true
    }
  }

  /// Whether the delay is known now.
  private func take(limit answer: Result<BusAnswer, BusError>) -> Bool {
    guard case .success(let answer) = answer else { return false }
    state.withLock { $0.delay = answer.duration ?? .seconds(Int64.max) }
    return true
  }

  private func take(_ news: Result<BusAnswer, BusError>, _ inbox: BusInbox) {
    switch news {
    case .success(let sleep) where sleep.isOn:
      lock.setAnnounced()
      let delay = state.withLock { state in
        state.isAsleep = true
        return state.delay
      }
      // A tenth is kept for the way back to logind.
      if lock.isHeld { inbox.put(.sleepDelay(delay - delay / 10)) }
      inbox.put(.event(Self.event(.suspend, "the machine is about to sleep")))
    case .success:
      state.withLock { $0.isAsleep = false }
      inbox.put(.event(Self.event(.resume, "the machine has woken up")))
      lock.setOver()
    case .failure(let error): inbox.warn(error, without: "the machine's sleep")
    }
  }

  private static func event(_ kind: LifecycleEvent.Kind, _ fact: String) -> LifecycleEvent {
    LifecycleEvent(kind, cause: LifecycleCause(.bus(fact)))
  }

  /// The hooks have ended. Once the machine is awake again the lock is kept for the next time.
  func receive(_ fact: LifecycleFact) {
    guard case .readyToSleep = fact, state.withLock({ $0.isAsleep }) else { return }
    lock.release()
  }
}
