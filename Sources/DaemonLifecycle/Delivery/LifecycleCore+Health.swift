import Synchronization

// The watchdog's question: do Swift's executors answer, and do the observers say that they are well?
extension LifecycleCore {
  struct Health {
    /// The check under way; at most one is.
    var round: HealthRound?
    var lastNumber: UInt64 = 0
    /// READY was sent, which is what arms systemd's watchdog.
    var isArmed = false
    /// When all was well, moved on by the time in which the process was stalled from outside.
    var lastHealthy = MonotonicTime(nanoseconds: 0)
  }

  /// One check, from its beginning until all have answered.
  struct HealthRound: Sendable {
    let number: UInt64
    /// Swift's executors were asked; false where there was no thread for that to be had.
    var isAsked = false
    var waitsForPool = true
    /// False where the main actor has never answered: nothing drains its queue, so nobody uses it.
    var waitsForMainActor: Bool
    var waitsForObservers = true
    var problems: [LifecycleReport.Entry] = []
    /// When the silence is told of; `nil` once it was. Before the next tick: at that, systemd's patience ends.
    var silenceDeadline: MonotonicTime?

    var isOver: Bool { !waitsForPool && !waitsForMainActor && !waitsForObservers }

    /// Who has not answered.
    var silent: String {
      var names: [String] = []
      if waitsForPool { names.append("Swift's global executor") }
      if waitsForMainActor { names.append("the main actor") }
      if waitsForObservers { names.append("an observer's checkHealth") }
      return names.joined(separator: ", ") + (names.count == 1 ? " does" : " do") + " not answer"
    }
  }

  enum HealthAnswer { case pool, mainActor }

  /// It is time for a ping: begin a check, which ends in one if all is well.
  ///
  /// After a stall from outside (the unit was frozen, the process stopped) systemd's patience may be used
  /// up already, so a daemon that was well before is pinged for at once. The stall is not held against
  /// it, nor in its favour: one that was stuck before the stall is stuck after it.
  func watchdogTick(stall: Duration) {
    let now = now
    change { state, work in
      // The stop has a time limit of its own, and being killed for a blocked pool would cost the save.
      if state.registry.termination != nil || state.drain != nil {
        return self.tell(.healthy, &work)
      }
      guard state.health.isArmed, let period = self.watchdogPeriod else { return }
      if stall > .zero {
        state.health.lastHealthy = state.health.lastHealthy.advanced(by: stall)
        if state.health.lastHealthy.duration(to: now) < period { self.tell(.healthy, &work) }
      }
      if let round = state.health.round {
        if !round.isAsked { work.healthRound = round.number }
        if stall == .zero, round.silenceDeadline != nil { self.tellSilence(&state, &work) }
        return
      }
      let event = LifecycleEvent(.checkHealth, cause: LifecycleCause(.watchdog))
      self.receive(event, postID: nil, &state, &work)
    }
  }

  func armHealth(_ state: inout State) {
    state.health.isArmed = true
    state.health.lastHealthy = now
  }

  /// Asks the observers beside the walk under way, and Swift's executors once the lock is free.
  func beginHealthRound(_ state: inout State, _ work: inout Work) {
    guard state.health.round == nil, state.registry.termination == nil else { return }
    state.health.lastNumber += 1
    let number = state.health.lastNumber
    state.health.round = HealthRound(
      number: number, waitsForMainActor: beacon.hasEverAnswered,
      silenceDeadline: watchdogPeriod.map { now.advanced(by: $0 / 4) })
    work.healthRound = number
    let cause = LifecycleCause(.watchdog)
    let patience = watchdogPeriod.map { $0 / 2 } ?? configuration.hookDeadline
    beginBeside(
      state.registry.audience(of: .checkHealth, cause: cause), waiter: nil,
      outer: (now.advanced(by: patience), .checkHealth), &state, &work)
  }

  /// Without a thread to be had, neither would answer: they are asked again at the next tick.
  func sendBeacons(of round: UInt64) {
    guard DispatchThreads.canBeHad else { return }
    state.withLock { state in
      if state.health.round?.number == round { state.health.round.update { $0.isAsked = true } }
    }
    Task.detached { [weak self] in self?.answer(.pool, round) }
    beacon.send { [weak self] in self?.answer(.mainActor, round) }
  }

  private func answer(_ answer: HealthAnswer, _ round: UInt64) {
    change { state, work in
      guard state.health.round?.number == round else { return }
      switch answer {
      case .pool: state.health.round.update { $0.waitsForPool = false }
      case .mainActor: state.health.round.update { $0.waitsForMainActor = false }
      }
      self.endHealthRoundIfOver(&state, &work)
    }
  }

  func observersAnswered(
    _ report: LifecycleReport, _ state: inout State, _ work: inout Work
  ) {
    guard state.health.round != nil else { return }
    state.health.round.update { round in
      round.waitsForObservers = false
      round.problems = report.problems.filter { $0.outcome.severity > 0 }
    }
    endHealthRoundIfOver(&state, &work)
  }

  /// Says who has not answered when it is time to.
  func tellSilence(at now: MonotonicTime, _ state: inout State, _ work: inout Work) {
    guard let deadline = state.health.round?.silenceDeadline, deadline <= now else { return }
    // A clock that is late itself, after a stall or on a busy machine, says nothing of those who are asked.
    let patience = (watchdogPeriod ?? .zero) / 4
    if deadline.duration(to: now) > patience / 2 {
      let next = now.advanced(by: patience)
      state.health.round.update { $0.silenceDeadline = next }
    } else {
      tellSilence(&state, &work)
    }
  }

  private func tellSilence(_ state: inout State, _ work: inout Work) {
    guard let round = state.health.round else { return }
    state.health.round.update { $0.silenceDeadline = nil }
    tell(.unhealthy(round.silent), &work)
  }

  /// The termination begins: pings go on without asking, and nobody waits for the answers.
  func endHealthRound(_ state: inout State) { state.health.round = nil }

  private func endHealthRoundIfOver(_ state: inout State, _ work: inout Work) {
    guard let round = state.health.round, round.isOver else { return }
    state.health.round = nil
    guard round.problems.isEmpty else {
      let problems = round.problems.map(\.description).joined(separator: "; ")
      return tell(.unhealthy(problems), &work)
    }
    state.health.lastHealthy = now
    tell(.healthy, &work)
  }
}
