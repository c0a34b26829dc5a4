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

  func begin(on session: BusSession, _ inbox: BusInbox) -> [any Sendable] {
    let login = Login1(session)
    lock.begin(on: session, inbox)
    let delays = BusInquiry(Login1.service, on: session) { [weak self] settled in
      login.inhibitDelayMax { [weak self] answer in settled(self?.take(answer) ?? true) }
    }
    let sleeps = login.watchSleep { [weak self] event in self?.take(event, inbox) }
    return [sleeps, delays]
  }

  /// Whether the delay is known now.
  private func take(_ delay: Result<Duration, BusError>) -> Bool {
    guard case .success(let delay) = delay else { return false }
    state.withLock { $0.delay = delay }
    return true
  }

  private func take(_ event: Result<Bool, BusError>, _ inbox: BusInbox) {
    switch event {
    case .success(true):
      lock.setAnnounced()
      let delay = state.withLock { state in
        state.isAsleep = true
        return state.delay
      }
      // A tenth is kept for the way back to logind.
      if lock.isHeld { inbox.put(.sleepDelay(delay - delay / 10)) }
      inbox.put(.event(Self.event(.suspend, "the machine is about to sleep")))
    case .success(false):
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
