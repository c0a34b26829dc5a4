import Synchronization
import Systemd

/// The machine's sleep, held back by a delay lock until the hooks have ended, where logind grants one.
///
/// Without a lock (it takes root or polkit) the hooks run all the same; the machine just does not wait for
/// them, and STATUS= says so.
final class SleepFollower: BusFollower {
  private struct State {
    /// From the announcement of a sleep until the machine is awake again.
    var isAsleep = false
    var delay = Duration.seconds(5)
    var watches: [BusWatch] = []
  }

  private let state = Mutex(State())
  private let lock = DelayLock(.sleep)

  func begin(on session: BusSession, _ inbox: BusInbox) {
    let login = Login1(session)
    let connections = session.observe(
      BusSessionObserver(connected: { [weak self] _ in
        self?.takeLock(login, inbox)
        self?.readDelay(login)
      }))
    let sleeps = login.watchSleep { [weak self] event in self?.take(event, login, inbox) }
    state.withLock { $0.watches = [connections, sleeps] }
  }

  private func take(
    _ event: Result<SleepEvent, BusError>, _ login: Login1, _ inbox: BusInbox
  ) {
    switch event {
    case .success(.willSleep):
      lock.setAnnounced(true)
      let delay = state.withLock { state in
        state.isAsleep = true
        return state.delay
      }
      // A tenth is kept for the way back to logind.
      if lock.isHeld { inbox.put(.sleepDelay(delay - delay / 10)) }
      inbox.put(.event(Self.event(.suspend, "the machine is about to sleep")))
    case .success(.didWake):
      lock.setAnnounced(false)
      state.withLock { $0.isAsleep = false }
      inbox.put(.event(Self.event(.resume, "the machine has woken up")))
      takeLock(login, inbox)
    case .failure(let error): inbox.complain(error, without: "the machine's sleep")
    }
  }

  private static func event(_ kind: LifecycleEvent.Kind, _ fact: String) -> LifecycleEvent {
    LifecycleEvent(kind, cause: LifecycleCause(.bus(fact)))
  }

  private func takeLock(_ login: Login1, _ inbox: BusInbox) {
    lock.take(login) { answer in
      switch answer {
      case .success: inbox.put(.remark(.delayLock, nil))
      case .failure(let error) where error.isAccessDenied:
        inbox.put(.remark(.delayLock, "no delay lock: a suspend does not wait for the hooks"))
      case .failure(let error): inbox.complain(error, without: "a delay lock for it")
      }
    }
  }

  private func readDelay(_ login: Login1) {
    login.inhibitDelayMax { [weak self] answer in
      if case .success(let delay) = answer { self?.state.withLock { $0.delay = delay } }
    }
  }

  /// The hooks have ended. Once the machine is awake again the lock is kept for the next time.
  func hear(_ fact: LifecycleFact) {
    guard case .readyToSleep = fact, state.withLock({ $0.isAsleep }) else { return }
    lock.release()
  }
}
