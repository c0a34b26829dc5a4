import Synchronization
import Systemd

/// The machine's sleep, held back by a delay lock until the hooks have ended, where logind grants one.
///
/// The lock is taken before it is needed and again after each sleep. Without one (it takes root or polkit)
/// the hooks run all the same; the machine just does not wait for them, and STATUS= says so.
final class SleepFollower: BusFollower {
  private struct State {
    var lock: InhibitorLock?
    /// logind was asked for a lock and has not answered.
    var isAsking = false
    /// From the announcement of a sleep until the machine is awake again.
    var isAsleep = false
    var delay = Duration.seconds(5)
    var watch: BusWatch?
    var connections: BusWatch?
  }

  private let state = Mutex(State())

  func begin(on session: BusSession, _ inbox: BusInbox) {
    let login = Login1(session)
    let connections = session.observe(
      BusSessionObserver(connected: { [weak self] _ in
        self?.takeLock(login, inbox)
        self?.readDelay(login)
      }))
    let watch = login.watchSleep { [weak self] event in self?.take(event, login, inbox) }
    state.withLock { state in
      state.connections = connections
      state.watch = watch
    }
  }

  private func take(
    _ event: Result<SleepEvent, BusError>, _ login: Login1, _ inbox: BusInbox
  ) {
    switch event {
    case .success(.willSleep):
      let delay = state.withLock { state in
        state.isAsleep = true
        return state.lock == nil ? nil : state.delay
      }
      // A tenth is kept for the way back to logind.
      if let delay { inbox.put(.sleepDelay(delay - delay / 10)) }
      inbox.put(.event(Self.event(.suspend, "the machine is about to sleep")))
    case .success(.didWake):
      state.withLock { $0.isAsleep = false }
      inbox.put(.event(Self.event(.resume, "the machine has woken up")))
      takeLock(login, inbox)
    case .failure(let error): inbox.complain(error, "Sleep of the machine is not heard of")
    }
  }

  private static func event(_ kind: LifecycleEvent.Kind, _ fact: String) -> LifecycleEvent {
    LifecycleEvent(kind, cause: LifecycleCause(.bus(fact)))
  }

  // MARK: The lock

  private func takeLock(_ login: Login1, _ inbox: BusInbox) {
    let asks = state.withLock { state in
      guard state.lock == nil, !state.isAsking else { return false }
      state.isAsking = true
      return true
    }
    guard asks else { return }
    login.inhibit(.sleep, who: Journal.programName, why: "Saves its state") { [weak self] answer in
      self?.take(answer, inbox)
    }
  }

  private func take(_ answer: Result<InhibitorLock, BusError>, _ inbox: BusInbox) {
    state.withLock { state in
      state.isAsking = false
      // Granted in the midst of a sleep it could only delay what nobody waits for.
      if case .success(let lock) = answer, !state.isAsleep { state.lock = lock }
    }
    switch answer {
    case .success: inbox.put(.remark(.delayLock, nil))
    case .failure(let error) where error.isAccessDenied:
      inbox.put(.remark(.delayLock, "no delay lock: a suspend does not wait for the hooks"))
    case .failure(let error): inbox.complain(error, "There is no delay lock for suspends")
    }
  }

  private func readDelay(_ login: Login1) {
    login.inhibitDelayMax { [weak self] answer in
      if case .success(let delay) = answer { self?.state.withLock { $0.delay = delay } }
    }
  }

  /// The hooks have ended: the machine may sleep.
  func hear(_ fact: LifecycleFact) {
    guard case .ended(.suspend, _, _, _) = fact else { return }
    let lock = state.withLock { state in
      guard state.isAsleep else { return nil as InhibitorLock? }
      return state.lock.take()
    }
    lock?.release()
  }
}
