/// Hears what the lifecycle does: how systemd and the journal come to know of it.
///
/// Called in the order of the facts, by one thread at a time, under no lock of the core's, and possibly on
/// the listening thread: it must not wait, and runs no code of the user's.
protocol LifecycleSink: AnyObject, Sendable {
  /// It is a service manager: it wants to know of progress, and allows for more time where that is asked for.
  var isServiceManager: Bool { get }
  func hear(_ fact: LifecycleFact)
}

/// What a core tells of itself.
enum LifecycleFact: Sendable {
  /// A walk begins, at this time: before any of its hooks, and after what asked for it.
  case began(LifecycleWalk, LifecycleCause, at: MonotonicTime)
  /// A walk has lasted a while: told every second.
  case progress(LifecycleProgress)
  /// A walk has ended, after so long, and where the daemon is now.
  case ended(LifecycleWalk, LifecycleReport, Duration, LifecycleSnapshot)
  /// The daemon stays in the background, for other reasons than before: no walk tells of that.
  case reasonsChanged(LifecycleCause, LifecycleSnapshot)
  /// The launch is over, and the daemon goes on: it is ready.
  case launched(LifecycleSnapshot)
  /// The end is asked for, and the daemon goes on serving for so long. Then, or before, it terminates.
  case draining(LifecycleCause, Duration)
  /// The termination begins. Told once; what a walk that it overtakes still has to tell comes after it.
  case terminating(LifecycleCause)
  /// The service manager wants a reload, and the signal map has none: it must have an answer all the same.
  case unmappedReload(LifecycleCause, at: MonotonicTime)
  /// A hook has got more time: the service manager must allow for so much from now on.
  case extended(Duration)
  /// Executors and observers are well: the watchdog may be pinged.
  case healthy
  /// They are not, and why.
  case unhealthy(String)
  /// The machine may sleep: what its sleep asked for has been done, or there was nothing to do.
  case readyToSleep
  /// A hook that had been given up has ended after all.
  case endedLate(String)
  /// Something that an operator should know, until it is taken back with `nil`.
  case remark(LifecycleRemark, String?)
  /// Something that an operator may want to find in the log.
  case complaint(String)
  /// Hooks of a delivery beside the walks did not complete.
  case problems([LifecycleReport.Entry])
  /// The subject is gone before its end; nothing more is told.
  case closed
  /// All is over; the process ends with this.
  case terminated(LifecycleExit)
}

/// Where the daemon is.
struct LifecycleSnapshot: Sendable, Equatable {
  let state: LifecycleState
  /// By name.
  let reasons: [BackgroundReason]
}

/// How far a walk has come.
struct LifecycleProgress: Sendable {
  let walk: LifecycleWalk
  let done: Int
  let total: Int
  /// The observers whose hooks run.
  let waitingFor: [ObserverEntry.Name]
  let elapsed: Duration

  /// `stopping: 3 of 5 done, waiting for Database, 2.1 s`
  var description: String {
    var names = waitingFor.prefix(3).map(\.description).joined(separator: ", ")
    if waitingFor.count > 3 { names += " and \(waitingFor.count - 3) more" }
    let waiting = names.isEmpty ? "" : ", waiting for \(names)"
    return "\(walk.gerund): \(done) of \(total) done\(waiting), \(elapsed.inSeconds) s"
  }
}

extension LifecycleCore {
  static let progressInterval = Duration.seconds(1)

  /// Tells the sinks, in order, once the lock is free.
  func tell(_ fact: LifecycleFact, _ work: inout Work) {
    if sinks.isEmpty { return }
    work.tellings.append { [sinks] in for sink in sinks { sink.hear(fact) } }
  }

  func snapshot(_ state: borrowing State) -> LifecycleSnapshot {
    LifecycleSnapshot(
      state: state.registry.state,
      reasons: state.registry.backgroundReasons.sorted { $0.name < $1.name })
  }

  /// Tells of an event that has changed why the daemon is in the background, while it stays there.
  func tellReasons(
    _ cause: LifecycleCause, unless before: Set<BackgroundReason>, _ state: borrowing State,
    _ work: inout Work
  ) {
    guard state.registry.state == .background, state.registry.termination == nil,
      !state.registry.backgroundReasons.isEmpty, state.registry.backgroundReasons != before
    else { return }
    tell(.reasonsChanged(cause, snapshot(state)), &work)
  }

  /// Once what a sleep asked for has been done; at once where there is nothing to do. A termination that
  /// overtakes it saves in its place, so the machine waits for its end.
  func tellReadyToSleep(_ state: inout State, _ work: inout Work) {
    guard state.isSleepAwaited, state.exit != nil || state.registry.isSleepSettled else { return }
    state.isSleepAwaited = false
    tell(.readyToSleep, &work)
  }

  /// The walk begins.
  func beginWalk(
    _ plan: LifecycleRegistry.Plan, _ state: inout State, _ work: inout Work
  ) {
    let now = now
    state.walk = WalkUnderWay(number: plan.walk, kind: plan.kind, cause: plan.cause, began: now)
    // Used once: the next suspend may be one that nobody delays.
    if plan.kind == .suspend, let end = state.sleepEnd.take(), end > now {
      state.sleepBudget = StopBudget(until: end, reserve: now.duration(to: end) / 2)
    }
    // Without somebody to tell, nobody is woken for it.
    if hasServiceManager { state.progressDeadline = now.advanced(by: Self.progressInterval) }
    // The kernel's time, also in a mock. Here, since another thread may be the one that tells of it, later.
    tell(.began(plan.kind, plan.cause, at: .now()), &work)
  }

  /// Says how far the walk has come when it is time to.
  func tellProgress(at now: MonotonicTime, _ state: inout State, _ work: inout Work) {
    guard let deadline = state.progressDeadline, deadline <= now else { return }
    guard let walk = state.walk else {
      state.progressDeadline = nil
      return
    }
    state.progressDeadline = now.advanced(by: Self.progressInterval)
    tell(.progress(progress(of: walk, at: now, state)), &work)
    // Said again, since `systemctl daemon-reload` makes systemd forget what it was asked for.
    if let until = walk.askedUntil, until > now { tell(.extended(now.duration(to: until)), &work) }
  }

  private func progress(of walk: WalkUnderWay, at now: MonotonicTime, _ state: borrowing State)
    -> LifecycleProgress
  {
    let under = state.deliveries.filter { !$0.isNested }
    let done = walk.entries.count + under.reduce(0) { $0 + $1.entries.count }
    let running = under.flatMap(\.running).map(\.entry.name)
    let waiting = under.reduce(0) { $0 + $1.waiting.count }
    let planned = state.registry.remainingAudience.reduce(0) { sum, next in
      guard let type = next.step.type.map({ ObjectIdentifier($0) }) else { return sum }
      return next.members.reduce(sum) { $0 + (state.observers[$1]?.hookCount(for: type) ?? 0) }
    }
    return LifecycleProgress(
      walk: walk.kind, done: done, total: done + running.count + waiting + planned,
      waitingFor: running, elapsed: walk.began.duration(to: now))
  }
}
