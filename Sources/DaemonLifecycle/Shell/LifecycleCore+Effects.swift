// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

// The machine's effects: bound to entries, drivers and continuations under the lock, performed outside.
extension LifecycleCore {
  /// The work that a critical section leaves to be done outside of the lock.
  struct Work: ~Copyable {
    /// A driver that has ended its call and takes the first new one.
    var reusable: HookDriver?
    /// The call for that driver.
    var next: HookCall?
    /// The call for a driver that rests, or a new one.
    var started: HookCall?
    /// More calls wait for a driver.
    var startsWaiting = false
    var hasMessages = false
    /// Everything else, made when it is needed, which is rare; even empty lists have a cost.
    private(set) var rest: Chores?

    init(reusable: HookDriver?) { self.reusable = reusable }

    /// Whether there is work besides that driver's call.
    var isMore: Bool { rest != nil || started != nil || hasMessages || startsWaiting }

    var chores: Chores {
      mutating get {
        let chores = rest ?? Chores()
        rest = chores
        return chores
      }
    }
  }

  /// Work that is rare.
  final class Chores {
    /// Calls that have waited, each with a driver of its own.
    var calls: [HookCall] = []
    /// Calls that wait for a driver no longer. The observer of one that was abandoned is busy until it ends.
    var dropped: [CallID] = []
    /// Drivers and the body, to be cancelled.
    var cancelled: [HookDriver] = []
    var cancelsBody: Task<Void, Never>?
    var healthRound: UInt64?
    /// The kinds that hooks are to be searched for, and the types.
    var searches: (kinds: NotificationKinds, types: [TypeHooks])?
    /// Values that may hold the last reference to a user's object, whose deinit may call the core.
    var garbage: [any Sendable] = []
    /// The readiness to show to probes before any hook is called, and its number.
    var readiness: ShownReadiness?
    /// Rounds whose daemon has ended.
    var endedRounds: [ForegroundRounds] = []
    /// Whether the process should have exited.
    var isOverdue = false
  }

  // MARK: Under the lock

  func bind(_ state: inout State, _ work: inout Work) {
    let hasMore = state.effects.hasMoreThanStarts
    if hasMore { bindEndings(&state, &work) }
    bindStarts(&state, &work)
    if hasMore {
      bindCancellations(&state, &work)
      state.effects.removeAll()
    }
    if state.machine.stop.exitDeadline != .distantFuture { state.keptAlive = self }
  }

  /// Binds ended calls and messages, before any call begins, which may take the place of one that has ended.
  private func bindEndings(_ state: inout State, _ work: inout Work) {
    if let code = state.effects.exitsWith { exitProcess(code) }
    for id in state.effects.removed {
      if let entry = state.observers.remove(id) { work.chores.garbage.append(entry) }
    }
    for id in state.effects.withdrawn {
      if let driver = state.removeDriver(of: id) { work.chores.garbage.append(driver) }
    }
    if !state.effects.released.isEmpty { work.chores.garbage += state.effects.released }
    for message in state.effects.messages { bind(message, &state, &work) }
  }

  private func bindCancellations(_ state: inout State, _ work: inout Work) {
    for id in state.effects.cancels {
      guard let driver = state.driver(of: id) else { continue }
      driver.markCancelled()
      work.chores.cancelled.append(driver)
    }
    if state.effects.cancelsBody {
      state.isBodyCancelled = true
      work.chores.cancelsBody = state.bodyTask
    }
    if let round = state.effects.healthRound { work.chores.healthRound = round }
    if !state.effects.searches.isEmpty {
      let kinds = state.effects.searches
      work.chores.searches = (kinds, state.machine.hooks.missing(kinds))
    }
    if state.effects.isOverdue { work.chores.isOverdue = true }
  }

  /// Binds new calls. One driver takes the next call; the others wait for a free driver, or for `startWaiting`.
  private func bindStarts(_ state: inout State, _ work: inout Work) {
    let isNew = !state.effects.starts.isEmpty
    guard isNew || !state.waitingStarts.isEmpty else { return }
    // Taken from the end, since what is taken is not copied.
    if state.effects.starts.count > 1 { state.effects.starts.reverse() }
    if let driver = work.reusable, !driver.isCancelled {
      work.next = nextCall(&state, &work, goesOnWith: driver)
    }
    if isNew, work.next == nil { work.started = nextCall(&state, &work) }
    while let start = state.effects.starts.popLast() { state.waitingStarts.append(start) }
    if !state.waitingStarts.isEmpty, !state.willStartWaiting {
      state.willStartWaiting = true
      work.startsWaiting = true
    }
  }

  /// The next call that waits, with a driver that has none, or the one that goes on. One that was withdrawn or
  /// abandoned waits no longer, and may be the last that holds what was posted.
  private func nextCall(
    _ state: inout State, _ work: inout Work, goesOnWith last: HookDriver? = nil
  ) -> HookCall? {
    while last == nil || !state.isNextCancelled, let start = state.takeStart() {
      guard state.machine.calls.isCurrent(start.call), let entry = state.observers[start.observer]
      else {
        work.chores.garbage.append(start.delivery)
        work.chores.dropped.append(start.call)
        continue
      }
      let driver = last ?? state.restingDrivers.popLast() ?? HookDriver(self)
      if state.machine.calls.isCancelled(start.call) { driver.markCancelled() }
      let hook =
        entry.hookType.map { state.machine.hooks[$0][start.hook] } ?? entry.hooks[start.hook]
      let call = HookCall(start, hook, entry, self, driver)
      state.insert(call)
      return call
    }
    return nil
  }

  private func bind(_ message: Effects.Message, _ state: inout State, _ work: inout Work) {
    switch message {
    case .fact(let fact): bind(fact, &state)
    case .announced(let step, let cause): announce(step, cause, &state)
    case .reported(let report, let isHealthCheck): publish(report, isHealthCheck, &state)
    case .answered(let id, let report):
      guard let poster = state.posters.removeValue(forKey: id) else { return }
      state.outbox.append { poster(report) }
    case .launchEnded(let report):
      for launch in state.launches { state.outbox.append { launch.end(report) } }
      state.outbox.append { self.watchSignals() }
      state.launches = []
    case .exited(let exit): bind(exit, &state, &work)
    }
  }

  private func bind(_ fact: LifecycleFact, _ state: inout State) {
    if case .terminating = fact { expectUnitJob(&state) }
    guard let sinks = state.sinks else { return state.earlyFacts.append(fact) }
    if sinks.isEmpty { return }
    var fact = fact
    // The kernel's time, also in a mock: systemd compares it with its own.
    if !time.isMonotonic, case .began(let transition, let cause, _) = fact {
      fact = .began(transition, cause, at: .now())
    }
    state.outbox.append(fact)
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
    // Also without receivers: the report may hold the last reference to a user's error.
    state.outbox.append { [recorder] in
      recorder?.didFinish(report)
      for stream in streams { stream.yield(report) }
      self.checkSignals()
    }
  }

  private func bind(_ exit: LifecycleExit, _ state: inout State, _ work: inout Work) {
    let (waiters, streams) = (state.exitWaiters, state.streams.values.map(\.finish))
    state.exitWaiters = []
    state.streams = [:]
    work.chores.endedRounds = Array(state.rounds.values)
    // No more notifications are delivered: an observer that retains its lifecycle is a cycle only until now.
    for entry in state.observers.removeAll() { work.chores.garbage.append(entry) }
    state.outbox.append {
      for finish in streams { finish() }
      for waiter in waiters { waiter.resume(returning: exit) }
    }
  }

  // MARK: Outside

  @inline(never)
  func perform(_ work: consuming Work) {
    if let chores = work.rest {
      perform(chores, hasMessages: work.hasMessages)
    } else if work.hasMessages {
      sendOutbox()
    }
    if let call = work.started { call.driver.start(with: call, of: self) }
    if work.startsWaiting { executor.enqueue(.work { self.startWaiting() }) }
  }

  private func perform(_ work: Chores, hasMessages: Bool) {
    if work.isOverdue { endProcess() }
    if let shown = work.readiness { show(shown) }
    if hasMessages { sendOutbox() }
    if let round = work.healthRound { sendBeacons(of: round) }
    // Cancellation handlers and deinits are user code. One item each: a handler that blocks must not keep the others
    // from being cancelled.
    if let body = work.cancelsBody {
      executor.enqueue(.work { self.useSwiftPool { body.cancel() } })
    }
    for driver in work.cancelled { executor.enqueue(.work { driver.cancelTask() }) }
    for rounds in work.endedRounds { executor.enqueue(.work { rounds.close() }) }
    if !work.garbage.isEmpty, executor.isOnLeader {
      let garbage = Garbage(&work.garbage)
      executor.enqueue(.work { garbage.drop() })
    }
    for call in work.dropped { handle(.ended(call, .gone)) }
    for call in work.calls { call.driver.start(with: call, of: self) }
    if let (kinds, types) = work.searches { searchHooks(of: types, for: kinds) }
  }

  /// Does what starts or resumes a task of Swift's pool: now, or once the pool has a thread. Without one Dispatch would
  /// keep the caller's, which may be the last that can call hooks.
  func useSwiftPool(_ work: @escaping @Sendable () -> Void) {
    if DispatchThreads.canBeHadNow { return work() }
    handle(.warning("Swift's pool has no thread left, for which a task waits: raise TasksMax=."))
    Task.detached(executorPreference: executor) {
      repeat {
        try? await LifecycleClock(keeper: self).sleep(for: .milliseconds(100))
      } while !DispatchThreads.canBeHadNow
      work()
    }
  }

  /// A hook has suspended, or blocks its thread: the calls that wait behind it begin, each with a driver of its own.
  private func startWaiting() {
    var work = Work(reusable: nil)
    state.withLock { state in
      state.willStartWaiting = false
      while let call = nextCall(&state, &work) { work.chores.calls.append(call) }
    }
    perform(work)
  }

  /// Lets a driver rest. Returns false when it is not needed, and should end.
  func rest(_ driver: HookDriver) -> Bool {
    state.withLock { state in
      guard !state.machine.isClosed, state.restingDrivers.count < Self.mostRestingDrivers else {
        return false
      }
      state.restingDrivers.append(driver)
      return true
    }
  }

  /// Each takes 3 kB, and more than one are rarely needed at once.
  private static var mostRestingDrivers: Int { 4 }

  func takeRestingDrivers() -> [HookDriver] {
    state.withLock { state in
      defer { state.restingDrivers = [] }
      return state.restingDrivers
    }
  }

  /// Objects to be released elsewhere; there is no other reference, and none here after `drop`.
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

  /// Sends the messages of the outbox, unless another thread is doing that.
  private func sendOutbox() {
    var batch: [Outbox.Item] = []
    var sinks: [any LifecycleSink] = []
    guard takeOutbox(into: &batch, &sinks, isFirst: true) else { return }
    repeat {
      for item in batch {
        switch item {
        case .fact(let fact): for sink in sinks { retry(sink, at: sink.receive(fact)) }
        case .call(let call): call()
        }
      }
      batch.removeAll(keepingCapacity: true)
    } while takeOutbox(into: &batch, &sinks)
  }

  /// False when there is nothing to send, or, to begin with, when another thread sends. Probes are shown first what it
  /// means: the thread that has put it there may not have come to that yet.
  private func takeOutbox(
    into batch: inout [Outbox.Item], _ sinks: inout [any LifecycleSink], isFirst: Bool = false
  ) -> Bool {
    let (hasItems, shown): (Bool, ShownReadiness?) = state.withLock { state in
      sinks = state.sinks ?? []
      guard !isFirst || !state.outbox.isDelivering, state.outbox.take(into: &batch) else {
        return (false, nil)
      }
      return (true, nextReadiness(&state))
    }
    if let shown { show(shown) }
    return hasItems
  }

  /// Without a thread to be had, neither would answer: they are asked again at the next tick.
  private func sendBeacons(of round: UInt64) {
    guard DispatchThreads.canBeHad else { return }
    handle(.healthAsked(round: round))
    Task.detached { [weak self] in self?.handle(.healthAnswer(.pool, round: round)) }
    beacon.send { [weak self] in self?.handle(.healthAnswer(.mainActor, round: round)) }
  }

  /// Ends a process that is still running `exitGrace` after its end: exit(3) can hang, for example on a full standard
  /// output.
  private func endProcess() {
    let (exit, grace) = state.withLock { state in
      (state.machine.stop.exit, state.machine.stop.grace(configuration))
    }
    guard let exit else { return }
    StandardError.writeLine(
      "lifecycle: still running \((grace ?? .zero).forReading) after the last hook:"
        + " ending with status \(exit.code)", .error,
      isJournal: StandardError.isJournal(configuration.systemd.environment))
    exitProcess(exit.code)
    // Only tests get here.
    let kept = state.withLock { $0.keptAlive.take() }
    withExtendedLifetime(kept) {}
  }
}
