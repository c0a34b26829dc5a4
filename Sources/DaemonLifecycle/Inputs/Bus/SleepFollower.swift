// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The follower of the machine's sleep, which a delay lock delays until the hooks have ended, if logind grants one.
///
/// Without a lock, which requires logind and root or a polkit rule, the hooks run all the same, but the machine does
/// not wait for them.
final class SleepFollower: BusFollower {
  private struct State {
    /// Whether a sleep was announced and the machine is not awake again.
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

  /// Takes the limit. Returns whether it is known now.
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
      inbox.put(.event(Self.event(.wakeUp, "the machine has woken up")))
      lock.setOver()
    case .failure(let error): inbox.warn(error, without: "the machine's sleep")
    }
  }

  private static func event(_ kind: LifecycleRequest, _ fact: String) -> LifecycleEvent {
    LifecycleEvent(kind, cause: LifecycleCause(.bus(fact)))
  }

  /// Releases the lock when the hooks have ended. Once the machine is awake again, the next lock is kept for the next
  /// sleep.
  func receive(_ fact: LifecycleFact) {
    guard case .readyToSleep = fact, state.withLock({ $0.isAsleep }) else { return }
    lock.release()
  }
}
