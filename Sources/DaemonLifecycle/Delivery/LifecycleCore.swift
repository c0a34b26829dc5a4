import CLinux
import Synchronization
import Systemd

/// What a subject is inside: the registry, the observers and the deliveries under one lock.
///
/// Data goes one way: a source's event enters with `receive`, the registry makes steps of it, a step
/// becomes a `Delivery`, drivers call its hooks, and `ended` or the clock brings each call's outcome back.
/// Nothing of the user's runs under the lock: critical sections change the state and note in a `Work`
/// what is to be done after it.
public final class LifecycleCore: Sendable {
  /// Never copied: each access is a look at the one that the lock guards.
  struct State: ~Copyable {
    var registry: LifecycleRegistry
    var observers = ObserverTable()
    /// Runs whose hook was given up and has not ended, by observer.
    var unfinished: [ObserverID: [HookRun]] = [:]
    var streams: [UInt64: NotificationSink] = [:]
    var lastID: UInt64 = 0

    /// The registry's current step, and those that hooks post meanwhile.
    private(set) var deliveries: [Delivery] = []
    /// The run whose driver goes from hook to hook without asking; `nil` once it is held.
    var freeRun: HookRun?
    /// When its first call began.
    var freeRunBegan = MonotonicTime(nanoseconds: 0)
    /// How many hooks have begun, or will, and have not ended.
    var occupied = 0
    var walk: WalkUnderWay?
    var posters: [PostID: CheckedContinuation<LifecycleReport, Never>] = [:]

    var timers = TimerQueue()
    /// Set while terminating, and while draining before that.
    var budget: StopBudget?
    /// The end was asked for, and the daemon still serves.
    var drain: Drain?
    /// Set once the termination has begun.
    var termination: TerminationStart?
    /// Grows with each critical section that has something to show to probes.
    var readinessNumber: UInt64 = 0
    /// What the service manager allows for a stop, once it has said so.
    var stopTimeout: Duration?
    /// When logind stops waiting for a suspend that has been announced.
    var sleepEnd: MonotonicTime?
    /// A sleep was announced, and nobody has been told yet that the machine may sleep.
    var isSleepAwaited = false
    /// Set while a suspend is delivered that logind waits for.
    var sleepBudget: StopBudget?
    /// Observers for whom a budget left no time: busy in the registry until that budget no longer counts. Empty once
    /// the termination has begun.
    var postponed: Set<ObserverID> = []
    /// Observers that have gone away, and that no report has named yet.
    var departures = Departures()
    /// When sinks are told next how far the walk under way has come; `nil` while there is none.
    var progressDeadline: MonotonicTime?
    var health = Health()
    var unitJob = UnitJobAnswer.notAsked
    var body = Body.none
    /// The launch's report, once it has ended the daemon.
    var failedLaunch: LifecycleReport?
    var isStarted = false
    var isClosed = false
    /// Set at the end: WillTerminate has been delivered.
    var exit: LifecycleExit?
    /// Those of `foreground { … }`, which end with the daemon whatever hooks they hear.
    var rounds: [ObjectIdentifier: ForegroundRounds] = [:]
    var launchWaiters: [CheckedContinuation<LifecycleReport, Never>] = []
    var exitWaiters: [CheckedContinuation<LifecycleExit, Never>] = []
    var idleWaiters: [CheckedContinuation<Void, Never>] = []
    /// Tests that wait until so many tasks sleep on the clock.
    var timerWaiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    /// What is to be told outside of the lock, in order; one thread at a time tells.
    var outbox: [@Sendable () -> Void] = []
    var isTelling = false
    /// `run` waits for the end, so `exitGrace` applies to what comes after it.
    var isRun = false
    /// When the process is ended because it has not ended by itself.
    var exitDeadline: MonotonicTime?
    /// This core, while `exitDeadline` is set: the subject may be gone by then.
    var keptAlive: LifecycleCore?

    mutating func add(_ delivery: Delivery) {
      delivery.place = deliveries.count
      deliveries.append(delivery)
    }

    mutating func remove(_ delivery: Delivery) {
      guard let place = delivery.place.take() else { return }
      // The last one takes the place.
      let last = deliveries.removeLast()
      guard last !== delivery else { return }
      last.place = place
      deliveries[place] = last
    }

    mutating func newID() -> UInt64 {
      lastID += 1
      return lastID
    }
  }

  /// Why the registry's current walk happens, and what has ended so far.
  struct WalkUnderWay {
    let number: UInt64
    let kind: LifecycleWalk
    let cause: LifecycleCause
    let began: MonotonicTime
    var entries: [LifecycleReport.Entry] = []
    /// Until when the service manager was asked to wait.
    var askedUntil: MonotonicTime?
    /// A termination has overtaken it: not all of it is done.
    var isOvertaken = false

    /// The first entries are taken as they are, not copied.
    mutating func add(_ new: [LifecycleReport.Entry]) {
      if entries.isEmpty { entries = new } else { entries += new }
    }
  }

  /// The body of `run`.
  enum Body {
    case none
    /// It runs; once the termination has begun it is cancelled, at the time named.
    case running(Task<Void, Never>, cancelled: MonotonicTime?)
    case ended(Failure?)
  }

  /// An error, and what it says of itself: put into words where it was thrown, since that is user code.
  struct Failure: Sendable {
    let error: any Error
    let text: String

    init(_ error: any Error) {
      self.error = error
      text = "\(error)"
    }
  }

  let configuration: LifecycleConfiguration
  let executor: HookExecutor
  let callerExecutor: CallerExecutor
  let beacon = MainActorBeacon()
  let time: TimeSource
  package let recorder: (any LifecycleRecorder)?
  /// Ends the process: `_exit`, or what a test puts in its place.
  let exitProcess: @Sendable (Int32) -> Void
  let state: Mutex<State>
  let sources = Mutex<[any LifecycleSource]>([])
  /// Who is told what happens: systemd, the journal. See `tell(_:_:)`.
  let sinks: [any LifecycleSink]
  /// Shows probes whether the daemon is ready.
  let readiness: ReadinessMarker?
  /// How long the service manager waits for a ping; `nil`: it does not.
  let watchdogPeriod: Duration?
  /// What the service manager keeps between two runs.
  let preservation: PreservationSlot
  /// A service manager hears of progress and of extended deadlines, and allows for them.
  let hasServiceManager: Bool
  /// A source finds out, when the termination begins, what the service manager is doing with the service.
  let asksForUnitJob: Bool

  init(
    configuration: LifecycleConfiguration, initialState: LifecycleState = .launching,
    time: TimeSource = .monotonic, executor: HookExecutor = HookExecutor(),
    recorder: (any LifecycleRecorder)? = nil,
    sinks: [any LifecycleSink] = [], readiness: ReadinessMarker? = nil,
    watchdogPeriod: Duration? = nil, asksForUnitJob: Bool = false,
    preservation: PreservationSlot? = nil,
    exitProcess: @escaping @Sendable (Int32) -> Void = { _exit($0) }
  ) {
    self.configuration = configuration
    self.executor = executor
    callerExecutor = CallerExecutor(executor)
    self.time = time
    self.recorder = recorder
    self.sinks = sinks
    self.readiness = readiness
    self.watchdogPeriod = watchdogPeriod
    self.preservation = preservation ?? PreservationSlot(configuration.systemd)
    self.asksForUnitJob = asksForUnitJob
    hasServiceManager = sinks.contains { $0.isServiceManager }
    self.exitProcess = exitProcess
    state = Mutex(State(registry: LifecycleRegistry(state: initialState)))
    executor.client = self
  }

  deinit { executor.close() }

  var now: MonotonicTime { time.now }
  var lifecycleState: LifecycleState { state.withLock { $0.registry.state } }

  // MARK: Events

  /// Takes one fact in; from any thread.
  func receive(_ event: LifecycleEvent) {
    change { state, work in self.receive(event, postID: nil, &state, &work) }
  }

  func receive(
    _ event: LifecycleEvent, postID: PostID?, _ state: inout State, _ work: inout Work
  ) {
    let reasons = state.registry.backgroundReasons
    defer { tellReasons(event.cause, unless: reasons, state, &work) }
    if case .suspend = event.kind { state.isSleepAwaited = true }
    if case .terminate = event.kind, drains(event, &state, &work) { return }
    defer { endDrainUnlessServing(&state, &work) }
    switch state.registry.receive(event, postID: postID) {
    case .none: break
    case .refused: refuse(event, postID, &state, &work)
    case .terminate: beginTermination(&state, &work)
    case .hurry: hurry(&state, &work)
    case .exitNow: exitNow(event.cause, &state, &work)
    case .checkHealth: beginHealthRound(&state, &work)
    }
  }

  /// A critical section: changes the state, begins what can begin, and does afterwards what must not
  /// be done under the lock.
  @discardableResult
  func change<T: Sendable>(_ body: (inout State, inout Work) -> T) -> T {
    change(reusing: nil, body).result
  }

  /// `driver` asks for its next call, which is its own to make.
  func change<T: Sendable>(
    reusing driver: HookDriver?, _ body: (inout State, inout Work) -> T
  ) -> (result: T, next: HookRun?) {
    var work = Work(reusable: driver)
    let (result, hasDeadline): (T, Bool) = state.withLock { state in
      holdFreeRun(&state)
      let result = body(&state, &work)
      pump(&state, &work)
      tellReadyToSleep(&state, &work)
      noteReadiness(&state, &work)
      if !state.idleWaiters.isEmpty, isIdle(state) {
        for waiter in state.idleWaiters { work.tellings.append { waiter.resume() } }
        state.idleWaiters = []
      }
      if !work.tellings.isEmpty {
        if state.outbox.isEmpty {
          state.outbox = work.tellings
        } else {
          state.outbox += work.tellings
        }
      }
      executor.unfinishedHooks.store(state.occupied, ordering: .relaxed)
      // Under the lock, so that a later deadline can't overwrite an earlier one computed after it.
      guard time.isMonotonic else { return (result, false) }
      let deadline = nextDeadline(state)
      executor.poll.arm(at: deadline)
      return (result, deadline != nil)
    }
    if hasDeadline { executor.listenIfMissing() }
    perform(&work)
    return (result, work.next)
  }

  // MARK: Holds

  func hold() -> ObservationToken {
    recorder?.didHold()
    change { state, _ in state.registry.hold() }
    return ObservationToken { [weak self] in
      self?.change { state, _ in state.registry.release() }
    }
  }

  // MARK: The clock

  func add(_ sleeper: Sleeper, until deadline: MonotonicTime) {
    let isClosed = change { state, work in
      guard !state.isClosed else { return true }
      state.timers.add(sleeper, at: deadline)
      self.wakeTimerWaiters(&state, &work)
      return false
    }
    if isClosed { sleeper.end(throwing: CancellationError()) }
    // Cancelled between its beginning and now: whoever cancelled has not found it here.
    if sleeper.hasEnded { remove(sleeper) }
  }

  func remove(_ sleeper: Sleeper) {
    change { state, _ in state.timers.remove(sleeper) }
  }

  /// What the clock reaches next: a sleep, a cancellation, an abandonment, the end.
  func nextDeadline(_ state: borrowing State) -> MonotonicTime? {
    var next = min(state.timers.first ?? .distantFuture, state.exitDeadline ?? .distantFuture)
    next = min(next, state.progressDeadline ?? .distantFuture)
    next = min(next, state.drain?.end ?? .distantFuture)
    next = min(next, state.health.round?.silenceDeadline ?? .distantFuture)
    for delivery in state.deliveries { next = min(next, delivery.earliestDeadline) }
    return next == .distantFuture ? nil : next
  }

  /// Wakes sleepers and sees to deadlines that have come.
  func timePassed() {
    let now = now
    change { state, work in
      work.sleepers += state.timers.removeExpired(at: now)
      if let end = state.drain?.end, end <= now { self.endDrain(&state, &work) }
      self.expire(at: now, &state, &work)
      self.tellProgress(at: now, &state, &work)
      self.tellSilence(at: now, &state, &work)
      if let end = state.exitDeadline, end <= now { self.endProcess(&state) }
    }
  }

  // MARK: Work

  private func perform(_ work: inout Work) {
    if let (isReady, number) = work.readiness { readiness?.set(isReady, number: number) }
    if !work.tellings.isEmpty { tell() }
    for sleeper in work.sleepers { sleeper.end() }
    if let round = work.healthRound { sendBeacons(of: round) }
    // Cancellation handlers and deinits are the user's code.
    // One item each: a handler that blocks must not keep the others from being cancelled.
    // Without a thread for it, the body can't end; and its cancellation would hold one of ours until there is one.
    if let body = work.cancelsBody, DispatchThreads.canBeHad {
      executor.enqueue(.work { body.cancel() })
    }
    for driver in work.cancelled { executor.enqueue(.work { driver.cancelTask() }) }
    for rounds in work.endedRounds { executor.enqueue(.work { rounds.close() }) }
    if !work.garbage.isEmpty, HookExecutor.Worker.current?.isLeading == true {
      let garbage = Garbage(&work.garbage)
      executor.enqueue(.work { garbage.drop() })
    }
    for (driver, run) in work.runs { driver.start(with: run) }
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
  private func tell() {
    while true {
      let tellings: [@Sendable () -> Void] = state.withLock { state in
        guard !state.isTelling, !state.outbox.isEmpty else { return [] }
        state.isTelling = true
        defer { state.outbox = [] }
        return state.outbox
      }
      if tellings.isEmpty { return }
      for telling in tellings { telling() }
      state.withLock { $0.isTelling = false }
    }
  }

  // MARK: The end of the subject

  /// The subject is gone: put back what was found, end what waits for it, and let the threads go.
  ///
  /// After a `run` that ends the process, the handlers stay: a signal between here and exit(3) must not
  /// turn the exit's code into a death by that signal.
  func close() {
    if state.withLock({ $0.exitDeadline == nil }) { closeSources() }
    change { state, work in
      state.drain = nil
      if state.exit == nil { self.tell(.closed, &work) }
    }
    readiness?.set(false, number: .max)
    let (entries, streams, sleepers, rounds, posters, isExiting) = state.withLock { state in
      holdFreeRun(&state)
      state.isClosed = true
      state.registry.removeAll()
      defer {
        state.streams = [:]
        state.rounds = [:]
        state.posters = [:]
      }
      return (
        state.observers.removeAll(), state.streams.values.map(\.finish),
        state.timers.removeExpired(at: .distantFuture), Array(state.rounds.values),
        Array(state.posters.values), state.exitDeadline != nil
      )
    }
    withExtendedLifetime(entries) {}
    for rounds in rounds { rounds.close() }
    for finish in streams { finish() }
    // Posts that waited for their turn: nobody hears them any more.
    let nobody = LifecycleReport(cause: LifecycleCause(.api), entries: [])
    for poster in posters { poster.resume(returning: nobody) }
    for sleeper in sleepers { sleeper.end(throwing: CancellationError()) }
    if !isExiting { executor.close() }
  }
}
