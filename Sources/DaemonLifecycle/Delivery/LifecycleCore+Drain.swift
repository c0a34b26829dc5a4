// What comes before an end that was asked for: the daemon serves on for a while, and says that it is not ready.
extension LifecycleCore {
  /// The terminating event, held back. The registry knows nothing of it yet: all goes on as before.
  struct Drain {
    let event: LifecycleEvent
    /// When it is let through.
    var end: MonotonicTime
  }

  /// Holds a terminating event back, or sees in it a reason to hold back no longer; true when it is dealt with.
  func drains(_ event: LifecycleEvent, _ state: inout State, _ work: inout Work) -> Bool {
    guard state.drain == nil else {
      if event.cause.asksForEnd, event.cause.signal == nil { return true }
      endDrain(&state, &work)
      // The second signal: it has cut the delay short, and that is all. The third one ends the process.
      if event.cause.signal != nil { _ = state.registry.receive(event) }
      return true
    }
    guard configuration.drainDelay > .zero, state.registry.isServing, event.cause.asksForEnd,
      !state.isClosed
    else { return false }
    let now = now
    let budget = StopBudget(configuration, allowed: state.stopTimeout, from: now)
    let delay = now.duration(to: budget.drainEnd(configuration))
    // What the configuration itself does not allow was said at the start.
    if delay < configuration.drainDelay, Self.drainProblem(configuration) == nil {
      tell(.complaint(Self.cut(configuration, delay)), &work)
    }
    guard delay > .zero else { return false }
    state.budget = budget
    state.drain = Drain(event: event, end: now.advanced(by: delay))
    tell(.draining(event.cause, delay), &work)
    return true
  }

  /// The termination begins.
  func endDrain(_ state: inout State, _ work: inout Work) {
    guard let drain = state.drain.take() else { return }
    if state.registry.receive(drain.event) == .terminate { beginTermination(&state, &work) }
  }

  /// A pause or a suspend ends the serving that the delay is for.
  func endDrainUnlessServing(_ state: inout State, _ work: inout Work) {
    if state.drain != nil, !state.registry.isServing { endDrain(&state, &work) }
  }

  /// The stop budget is now known to be shorter.
  func limitDrain(_ state: inout State) {
    guard let budget = state.budget else { return }
    state.drain.update { $0.end = min($0.end, budget.drainEnd(configuration)) }
  }

  /// At the end of every critical section, so that no thread can start a hook before what that hook's event
  /// means for probes has been shown to them.
  func noteReadiness(_ state: inout State, _ work: inout Work) {
    guard readiness != nil else { return }
    state.readinessNumber += 1
    let isReady = state.registry.isServing && state.drain == nil && !state.isClosed
    work.readiness = (isReady, state.readinessNumber)
  }

  /// What is wrong with the configured delay, if that can be seen without knowing what systemd allows.
  static func drainProblem(_ configuration: LifecycleConfiguration) -> String? {
    guard configuration.drainDelay >= .zero else {
      return "drainDelay is negative (\(configuration.drainDelay)): the daemon does not drain."
    }
    let zero = MonotonicTime(nanoseconds: 0)
    let budget = StopBudget(configuration, allowed: nil, from: zero)
    let delay = zero.duration(to: budget.drainEnd(configuration))
    return delay < configuration.drainDelay ? cut(configuration, delay) : nil
  }

  private static func cut(_ configuration: LifecycleConfiguration, _ delay: Duration) -> String {
    "The drain delay of \(configuration.drainDelay.inSeconds) s does not fit into the stop budget beside the save"
      + " reserve and the hooks: \(delay.inSeconds) s do. Raise the one (in a container: its grace period), or lower"
      + " the others."
  }
}

extension LifecycleCause {
  /// Somebody asks a daemon that serves to end, rather than something has ended it.
  fileprivate var asksForEnd: Bool {
    switch origin {
    case .bodyReturned, .bodyFailed, .launchFailed: false
    default: true
    }
  }
}
