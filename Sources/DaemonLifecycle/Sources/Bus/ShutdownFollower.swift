import Synchronization
import Systemd

/// The machine's shutdown, as logind announces it before SIGTERM comes: state is saved, and the shutdown is
/// held back until then where logind grants a delay lock.
final class ShutdownFollower: BusFollower {
  private struct State {
    var lock: InhibitorLock?
    var isAsking = false
    /// A save was asked for, and has begun.
    var isAwaited = false
    var hasBegun = false
    var watch: BusWatch?
    var connections: BusWatch?
  }

  private let state = Mutex(State())

  func begin(on session: BusSession, _ inbox: BusInbox) {
    let login = Login1(session)
    let connections = session.observe(
      BusSessionObserver(connected: { [weak self] _ in self?.takeLock(login, inbox) }))
    let watch = login.watchShutdown { [weak self] event in self?.take(event, login, inbox) }
    state.withLock { state in
      state.connections = connections
      state.watch = watch
    }
  }

  private func take(
    _ event: Result<ShutdownEvent, BusError>, _ login: Login1, _ inbox: BusInbox
  ) {
    switch event {
    case .success(.willShutDown(let kind)):
      state.withLock { state in
        state.isAwaited = true
        state.hasBegun = false
      }
      let fact = "the machine is about to \(Self.phrase(kind))"
      inbox.put(.event(LifecycleEvent(.saveState, cause: LifecycleCause(.bus(fact)))))
    case .success(.calledOff):
      state.withLock { $0.isAwaited = false }
      takeLock(login, inbox)
    case .failure(let error): inbox.complain(error, "Shutdown of the machine is not heard of")
    }
  }

  private static func phrase(_ kind: ShutdownKind?) -> String {
    switch kind {
    case .powerOff: "power off"
    case .reboot: "reboot"
    case .halt: "halt"
    case .kexec: "start another kernel"
    case .softReboot: "restart its user space"
    case .other(let word): "shut down (\(word))"
    case nil: "shut down"
    }
  }

  private func takeLock(_ login: Login1, _ inbox: BusInbox) {
    let asks = state.withLock { state in
      guard state.lock == nil, !state.isAsking else { return false }
      state.isAsking = true
      return true
    }
    guard asks else { return }
    login.inhibit(.shutdown, who: Journal.programName, why: "Saves its state") {
      [weak self] answer in
      self?.take(answer, inbox)
    }
  }

  private func take(_ answer: Result<InhibitorLock, BusError>, _ inbox: BusInbox) {
    state.withLock { state in
      state.isAsking = false
      if case .success(let lock) = answer { state.lock = lock }
    }
    if case .failure(let error) = answer {
      inbox.complain(error, "There is no delay lock for shutdowns")
    }
  }

  /// The save that was asked for has ended: the machine may go down.
  func hear(_ fact: LifecycleFact) {
    let lock: InhibitorLock? = state.withLock { state in
      switch fact {
      case .began(.save, _) where state.isAwaited: state.hasBegun = true
      case .ended(.save, _, _, _) where state.isAwaited && state.hasBegun:
        state.isAwaited = false
        return state.lock.take()
      default: break
      }
      return nil
    }
    lock?.release()
  }
}
