import DaemonSystemd
import Synchronization

// What the machine's effects come to: bound to entries, drivers and continuations under the lock, performed outside.
extension LifecycleCore {
  /// What a critical section leaves to be done outside.
  struct Work: ~Copyable {
    /// A driver that is through with its call and takes the first new one.
    var reusable: HookDriver?
    /// The call for that driver.
    var next: HookCall?
    /// All else, made when it is needed. `nil` after nearly every end of a hook; even empty lists would cost something.
    private(set) var rest: Chores?

    init(reusable: HookDriver?) { self.reusable = reusable }

    var chores: Chores {
      mutating get {
        let chores = rest ?? Chores()
        rest = chores
        return chores
      }
    }
  }

  /// What is rarely to be done.
  final class Chores {
    /// Calls for new drivers.
    var calls: [HookCall] = []
    /// Drivers and the body, to be cancelled.
    var cancelled: [HookDriver] = []
    var cancelsBody: Task<Void, Never>?
    var healthRound: UInt64?
    /// What may hold the last reference to an object of the user's, whose deinit may call us.
    var garbage: [any Sendable] = []
    /// What probes are to be shown, and how new that is: before any hook is called.
    var readiness: (isReady: Bool, number: UInt64)?
    /// Rounds whose daemon has ended.
    var endedRounds: [ForegroundRounds] = []
    /// The process still lives, and should not.
    var isOverdue = false
    var hasMessages = false
  }

  // MARK: Under the lock

  func bind(_ state: inout State, _ work: inout Work) {
    let hasMore = state.effects.hasMoreThanStarts
    if hasMore { bindEndings(&state, &work) }
    // Taken from the end, since what is taken is not copied.
    if state.effects.starts.count > 1 { state.effects.starts.reverse() }
    while let start = state.effects.starts.popLast() { bind(start, &state, &work) }
    if hasMore {
      bindCancellations(&state, &work)
      state.effects.removeAll()
    }
    if state.machine.stop.exitDeadline != .distantFuture { state.keptAlive = self }
  }

  /// What is over, and what is sent: before any call begins, which may take the place of one that is over.
  private func bindEndings(_ state: inout State, _ work: inout Work) {
    if let code = state.effects.exitsWith { exitProcess(code) }
    for id in state.effects.removed {
      if let entry = state.observers.remove(id) { work.chores.garbage.append(entry) }
    }
    for id in state.effects.withdrawn {
      if let call = state.removeHookCall(id) { work.chores.garbage.append(call) }
    }
    if !state.effects.released.isEmpty { work.chores.garbage += state.effects.released }
    for message in state.effects.messages { bind(message, &state, &work) }
  }

  private func bindCancellations(_ state: inout State, _ work: inout Work) {
    for id in state.effects.cancels {
      guard let driver = state.hookCall(id)?.driver else { continue }
      driver.markCancelled()
      work.chores.cancelled.append(driver)
    }
    if state.effects.cancelsBody { work.chores.cancelsBody = state.bodyTask }
    if let round = state.effects.healthRound { work.chores.healthRound = round }
    if state.effects.isOverdue { work.chores.isOverdue = true }
  }

  /// Does nothing for a call that was withdrawn again by the same input.
  private func bind(
    _ start: consuming Effects.Start, _ state: inout State, _ work: inout Work
  ) {
    guard let entry = state.observers[start.observer] else { return }
    guard work.reusable?.isCancelled == false else {
      guard state.machine.calls.isCurrent(start.call) else { return }
      let call = HookCall(start, entry, HookDriver(self), hasBegun: false)
      state.insert(call)
      return work.chores.calls.append(call)
    }
    // It is on its way: what a new driver would ask for is granted here.
    let isOnActor = entry.asActor != nil && entry.hooks[start.hook].isMethod
    guard state.machine.move(start.call, to: isOnActor ? .driven : .begun),
      let driver = work.reusable.take()
    else { return }
    let call = HookCall(start, consume entry, consume driver, hasBegun: true)
    state.insert(call)
    work.next = consume call
  }

  private func bind(_ message: Effects.Message, _ state: inout State, _ work: inout Work) {
    switch message {
    case .fact(let fact): bind(fact, &state)
    case .announced(let step, let cause): announce(step, cause, &state)
    case .reported(let report, let isHealthCheck): publish(report, isHealthCheck, &state)
    case .answered(let id, let report):
      guard let poster = state.posters.removeValue(forKey: id) else { return }
      state.outbox.append { poster.resume(returning: report) }
    case .launchEnded(let report):
      for waiter in state.launchWaiters { state.outbox.append { waiter.resume(returning: report) } }
      state.launchWaiters = []
    case .exited(let exit): bind(exit, &state, &work)
    }
  }

  private func bind(_ fact: LifecycleFact, _ state: inout State) {
    if case .terminating = fact { expectUnitJob(&state) }
    if sinks.isEmpty { return }
    var fact = fact
    // The kernel's time, also in a mock: systemd compares it with its own.
    if !time.isMonotonic, case .began(let transition, let cause, _) = fact {
      fact = .began(transition, cause, at: .now())
    }
    state.outbox.append { [sinks, fact] in for sink in sinks { sink.receive(fact) } }
  }

  /// Streams and recorders see a step as it begins.
  private func announce(
    _ step: LifecycleStep, _ cause: LifecycleCause, _ state: inout State
  ) {
    guard recorder != nil || !state.streams.isEmpty, let type = step.type else { return }
    let subject = StreamSubscriber.Subject.notifications(ObjectIdentifier(type))
    let streams = state.streams.values.filter { $0.subject == subject }
    guard recorder != nil || !streams.isEmpty else { return }
    let context = LifecycleContext(cause: cause, time: LifecycleClock.Instant(now))
    guard let notification = step.notification(context) else { return }
    state.outbox.append { [recorder] in
      recorder?.willDeliver(notification)
      for stream in streams { stream.yield(notification) }
    }
  }

  private func publish(_ report: LifecycleReport, _ isHealthCheck: Bool, _ state: inout State) {
    let streams =
      isHealthCheck ? [] : state.streams.values.filter { $0.subject == .reports }
    // Also with nobody to tell: the report may hold the last reference to an error of the user's.
    state.outbox.append { [recorder] in
      recorder?.didFinish(report)
      for stream in streams { stream.yield(report) }
    }
  }

  private func bind(_ exit: LifecycleExit, _ state: inout State, _ work: inout Work) {
    let (waiters, streams) = (state.exitWaiters, state.streams.values.map(\.finish))
    state.exitWaiters = []
    state.streams = [:]
    work.chores.endedRounds = Array(state.rounds.values)
    // Nobody receives anything any more: an observer that holds its lifecycle is a cycle only until now.
    for entry in state.observers.removeAll() { work.chores.garbage.append(entry) }
    state.outbox.append {
      for finish in streams { finish() }
      for waiter in waiters { waiter.resume(returning: exit) }
    }
  }

  // MARK: Outside

  @inline(never)
  func perform(_ work: Chores) {
    if work.isOverdue { endProcess() }
    if let (isReady, number) = work.readiness { readiness?.set(isReady, number: number) }
    if work.hasMessages { sendOutbox() }
    if let round = work.healthRound { sendBeacons(of: round) }
    // Cancellation handlers and deinits are the user's code.
    // One item each: a handler that blocks must not keep the others from being cancelled.
    // Without a thread for it, the body can't end; and its cancellation would hold one of ours until there is one.
    if let body = work.cancelsBody, DispatchThreads.canBeHad {
      executor.enqueue(.work { body.cancel() })
    }
    for driver in work.cancelled { executor.enqueue(.work { driver.cancelTask() }) }
    for rounds in work.endedRounds { executor.enqueue(.work { rounds.close() }) }
    if !work.garbage.isEmpty, executor.isOnLeader {
      let garbage = Garbage(&work.garbage)
      executor.enqueue(.work { garbage.drop() })
    }
    for call in work.calls { call.driver.start(with: call) }
  }

  /// Objects to be let go of elsewhere: nobody else holds them, this one not after `drop`.
  private final class Garbage: Sendable {
    private let objects: Mutex<[any Sendable]>

    init(_ objects: inout [any Sendable]) {
      self.objects = Mutex(objects)
      objects = []
    }

    func drop() {
      let dropped = objects.withLock { objects in
        defer { objects = [] }
        return objects
      }
      withExtendedLifetime(dropped) {}
    }
  }

  /// Empties the outbox, unless another thread is about it already.
  private func sendOutbox() {
    var messages: [@Sendable () -> Void] = state.withLock { state in
      guard !state.isDelivering else { return [] }
      return Self.takeOutbox(&state)
    }
    while !messages.isEmpty {
      for message in messages { message() }
      messages = state.withLock { Self.takeOutbox(&$0) }
    }
  }

  /// What is to be sent next; nobody sends any more when that is nothing.
  private static func takeOutbox(_ state: inout State) -> [@Sendable () -> Void] {
    state.isDelivering = !state.outbox.isEmpty
    defer { state.outbox = [] }
    return state.outbox
  }

  /// Without a thread to be had, neither would answer: they are asked again at the next tick.
  private func sendBeacons(of round: UInt64) {
    guard DispatchThreads.canBeHad else { return }
    handle(.healthAsked(round: round))
    Task.detached { [weak self] in self?.handle(.healthAnswer(.pool, round: round)) }
    beacon.send { [weak self] in self?.handle(.healthAnswer(.mainActor, round: round)) }
  }

  /// The process still lives `exitGrace` after its end: exit(3) can hang, on a full stdout for one.
  private func endProcess() {
    let (exit, grace) = state.withLock { state in
      (state.machine.stop.exit, state.machine.stop.grace(configuration))
    }
    guard let exit else { return }
    StandardError.writeLine(
      "lifecycle: still running \(grace?.inSeconds ?? "0") s after the last hook:"
        + " ending with status \(exit.code)")
    exitProcess(exit.code)
    // Only a test gets here.
    let kept = state.withLock { $0.keptAlive.take() }
    withExtendedLifetime(kept) {}
  }
}
