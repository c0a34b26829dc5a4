// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

/// The core of a subject: the machine and what it can't contain (observers, tasks, continuations), under one lock.
///
/// Data flows in one direction: a source's input enters with `handle`, the machine decides, and its effects are bound
/// to entries, drivers and continuations under the lock, and performed outside. No user code runs under the lock, and
/// nothing here decides about calls.
///
/// The order of locks: `state` is taken first. While it is held the poll's alarm, a driver's place of its call, the
/// beacon, `LateHooks` or a launch may be locked, and what a test puts in the place of `_exit`; none of these locks
/// another. `sources` is taken before a source's own lock. No other two locks are held at once.
@_documentation(visibility: internal)
public final class LifecycleCore: TimeKeeper, Sendable {
  /// Access only while holding `state`'s lock.
  struct State: ~Copyable {
    var machine: LifecycleMachine
    /// The machine's effects; empty between two critical sections.
    var effects = Effects()
    /// The observers, by the machine's ids.
    var observers = ObserverTable()
    /// By the index of their handles: the newest call of that index and its driver, or `nil` when that has ended.
    var driven: [(call: CallID, driver: HookDriver)?] = []
    /// Calls that wait for a driver: the first that has nothing else to do takes the next. See `startWaiting`, which
    /// is on its way while there are any.
    var waitingStarts = Deque<Effects.Start>()
    var willStartWaiting = false
    /// Drivers that have nothing to do; a few.
    var restingDrivers: [HookDriver] = []
    /// The body of `run`, from its beginning.
    var bodyTask: Task<Void, Never>?
    /// Whether the body is cancelled: a task that is made for it later is cancelled at once.
    var isBodyCancelled = false
    var streams: [UInt64: StreamSubscriber] = [:]
    /// The functions that resume posters.
    var posters: [PostID: @Sendable (LifecycleReport) -> Void] = [:]
    /// Those of `foreground { … }`, which end with the daemon whatever hooks they receive.
    var rounds: [ObjectIdentifier: ForegroundRounds] = [:]
    var timers = TimerQueue()
    var unitJob = UnitJobAnswer.notAsked
    /// Whether a source reads the service manager's job when the termination begins.
    var asksForUnitJob: Bool
    /// The outputs that receive facts: systemd, the journal. `nil` until the start: facts wait in `earlyFacts`.
    var sinks: [any LifecycleSink]?
    var earlyFacts: [LifecycleFact] = []
    /// Shows probes whether the daemon is ready.
    var readiness: ReadinessMarker?
    /// Those that have not ended.
    var launches: [Launch] = []
    var exitWaiters: [CheckedContinuation<LifecycleExit, Never>] = []
    /// A mock of a daemon at work: deliveries are held until its test asks for something.
    var isInSetUp = false
    /// What it asked for while the launch of the set-up was under way.
    var earlyEvents: [LifecycleEvent] = []
    /// Tests that wait until nothing is being delivered.
    var idleWaiters: [Sleeper] = []
    /// Tests that wait until so many tasks sleep on the clock.
    var timerWaiters: [(count: Int, waiter: Sleeper)] = []
    var outbox = Outbox()
    /// The deadline that the executor was given. While a driver goes on it may be earlier than the next, never later.
    var armedDeadline = MonotonicTime.distantFuture
    /// Grows with each critical section that has something to show to probes.
    var readinessNumber: UInt64 = 0
    var lastID: UInt64 = 0
    var isStarted = false
    /// This core, while the process is about to be ended: the subject may be gone by then.
    var keptAlive: LifecycleCore?

    mutating func handle(_ input: consuming LifecycleMachine.Input, at now: MonotonicTime) {
      machine.handle(input, at: now, &effects)
    }

    /// Those that have waited are first; the new ones are in reverse.
    mutating func takeStart() -> Effects.Start? {
      waitingStarts.popFirst() ?? effects.starts.popLast()
    }

    /// The next was cancelled while it waited.
    var isNextCancelled: Bool {
      guard let start = waitingStarts.first else { return false }
      return machine.calls.isCancelled(start.call)
    }

    mutating func newID() -> UInt64 {
      lastID += 1
      return lastID
    }

    /// The driver of a call that has not ended.
    func driver(of id: CallID) -> HookDriver? {
      guard driven.indices.contains(id.index), let entry = driven[id.index], entry.call == id
      else { return nil }
      return entry.driver
    }

    /// Forgets a call that has ended, and returns its driver, which the caller must release outside of the lock.
    @discardableResult mutating func removeDriver(of id: CallID) -> HookDriver? {
      guard let driver = driver(of: id) else { return nil }
      driven[id.index] = nil
      return driver
    }

    mutating func insert(_ call: HookCall) {
      while driven.count <= call.id.index { driven.append(nil) }
      driven[call.id.index] = (call.id, call.driver)
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
  /// The descriptors and bytes that the service manager keeps between two runs.
  let preservation: PreservationSlot

  /// - Parameter sinks: `nil` where `integrate` will bring them.
  init(
    configuration: LifecycleConfiguration, initialState: LifecycleState = .launching,
    time: TimeSource = .monotonic, executor: HookExecutor = HookExecutor(),
    recorder: (any LifecycleRecorder)? = nil,
    sinks: [any LifecycleSink]? = [], readiness: ReadinessMarker? = nil,
    watchdogPeriod: Duration? = nil, asksForUnitJob: Bool = false,
    preservation: PreservationSlot? = nil,
    exitProcess: @escaping @Sendable (Int32) -> Void = { _exit($0) }
  ) {
    self.configuration = configuration
    self.executor = executor
    callerExecutor = CallerExecutor(executor)
    self.time = time
    self.recorder = recorder
    self.preservation = preservation ?? PreservationSlot(configuration.systemd)
    self.exitProcess = exitProcess
    let policy = LifecycleMachine.Policy(
      configuration: configuration,
      hasServiceManager: sinks?.contains { $0.isServiceManager } ?? false,
      watchdogPeriod: watchdogPeriod)
    state = Mutex(
      State(
        machine: LifecycleMachine(policy, state: initialState), asksForUnitJob: asksForUnitJob,
        sinks: sinks, readiness: readiness))
    executor.client = self
  }

  /// Takes what the start has decided, before the launch.
  func integrate(
    _ policy: LifecycleMachine.Policy, sinks: [any LifecycleSink], readiness: ReadinessMarker?,
    asksForUnitJob: Bool
  ) {
    change { state, _ in
      state.machine.adopt(policy, &state.effects)
      state.sinks = sinks
      state.readiness = readiness
      state.asksForUnitJob = asksForUnitJob
      for fact in state.earlyFacts { state.outbox.append(fact) }
      state.earlyFacts = []
    }
  }

  deinit {
    for driver in takeRestingDrivers() { driver.endRest() }
    executor.close()
  }

  var now: MonotonicTime { time.now }
  var lifecycleState: LifecycleState { state.withLock { $0.machine.registry.state } }
  var isTerminating: Bool { state.withLock { $0.machine.isTerminating } }

  // MARK: Inputs

  /// Takes one input in; from any thread. Out of line: what is inlined here is the machine, and there are many callers.
  @inline(never)
  func handle(_ input: LifecycleMachine.Input) {
    change { state, now in state.handle(input, at: now) }
  }

  /// Takes one fact in; from any thread.
  @inline(never)
  func receive(_ event: LifecycleEvent) {
    if recorder != nil, endSetUp(with: event) { return }
    guard case .checkHealth = event.kind else { return handle(.event(event)) }
    handle(.checkHealth(event.cause, asksMainActor: beacon.hasEverAnswered))
  }

  /// Ends a call, and returns the one that its driver continues with.
  func ended(_ call: HookCall, _ end: LifecycleMachine.CallEnd) -> HookCall? {
    change(for: call.driver) { state, now in
      state.removeDriver(of: call.id)
      state.handle(.ended(call.id, end), at: now)
    }.next
  }

  /// Whether the hook that is about to run may; false once it was abandoned or withdrawn.
  func move(_ id: CallID, to progress: Call.Progress) -> Bool {
    state.withLock { $0.machine.move(id, to: progress) }
  }

  func isCurrent(_ id: CallID) -> Bool { state.withLock { $0.machine.calls.isCurrent(id) } }

  /// Returns the deadline of a call; `nil` once it has ended or was abandoned.
  func deadline(of id: CallID) -> MonotonicTime? {
    state.withLock { state in
      state.machine.calls.isCurrent(id) ? state.machine.calls.find(id)?.deadline : nil
    }
  }

  /// Handles the deadline that was set.
  package func timePassed() {
    let expired = change { state, now in
      var statuses: [CallID: LifecycleReport.Outcome.Progress] = [:]
      for id in state.machine.due(at: now) {
        statuses[id] = state.driver(of: id)?.executionStatus(of: id, beacon)
      }
      state.handle(.clock(statuses), at: now)
      return state.timers.removeExpired(at: now)
    }.result
    for sleeper in expired { sleeper.end() }
  }

  // MARK: The critical section

  /// Changes the state, and does afterwards what must not be done under the lock. `driver` asks for its next call,
  /// which is its own to make.
  @discardableResult
  func change<T: Sendable>(
    for driver: HookDriver? = nil,
    _ body: (inout State, MonotonicTime) -> T
  ) -> (result: T, next: HookCall?) {
    var work = Work(reusable: driver)
    let (result, hasDeadline): (T, Bool) = state.withLock { state in
      let result = body(&state, now)
      return (result, bindChange(&state, &work))
    }
    if hasDeadline { executor.listenIfMissing() }
    let next = work.next.take()
    if work.isMore { perform(work) }
    return (result, next)
  }

  /// The end of every critical section: what its effects come to, and whether there is a deadline. Out of line, since
  /// `change` has a copy for each of its callers.
  @inline(never)
  private func bindChange(_ state: inout State, _ work: inout Work) -> Bool {
    if !state.earlyEvents.isEmpty, state.machine.isIdle { receiveEarlyEvents(&state) }
    bind(&state, &work)
    noteReadiness(&state, &work)
    if !state.idleWaiters.isEmpty { noteIdle(&state) }
    work.hasMessages = !state.outbox.isEmpty
    executor.unfinishedHooks.store(state.machine.calls.count, ordering: .relaxed)
    executor.abandonedHooks.store(state.machine.calls.abandonedCount, ordering: .relaxed)
    return arm(&state, goesOn: work.next != nil)
  }

  /// Under the lock, so that a later deadline can't overwrite an earlier one computed after it.
  ///
  /// - Parameter goesOn: A driver goes on with its next call. A later deadline then waits for that to end, or for the
  ///   timer to go off too early, which is rare.
  private func arm(_ state: inout State, goesOn: Bool) -> Bool {
    guard time.isMonotonic else { return false }
    let deadline = nextDeadline(state)
    if goesOn, let deadline, state.armedDeadline <= deadline { return true }
    state.armedDeadline = deadline ?? .distantFuture
    executor.poll.arm(at: deadline)
    return deadline != nil
  }

  /// What the clock reaches next: a sleep, or something that the machine does. Inlined like
  /// `LifecycleMachine.deadline`.
  @inline(__always) func nextDeadline(_ state: borrowing State) -> MonotonicTime? {
    let next = min(state.timers.first ?? .distantFuture, state.machine.deadline)
    return next == .distantFuture ? nil : next
  }

  /// At the end of every critical section, so that no thread can start a hook before what that hook's event means for
  /// probes has been shown to them.
  private func noteReadiness(_ state: inout State, _ work: inout Work) {
    if let shown = nextReadiness(&state) { work.chores.readiness = shown }
  }

  typealias ShownReadiness = (marker: ReadinessMarker, isReady: Bool, number: UInt64)

  /// What probes are to be shown now, and how new that is; `nil`: there is nothing that shows it.
  func nextReadiness(_ state: inout State) -> ShownReadiness? {
    guard let readiness = state.readiness else { return nil }
    state.readinessNumber += 1
    return (readiness, state.machine.isReady, state.readinessNumber)
  }

  private func noteIdle(_ state: inout State) {
    guard state.machine.isIdle else { return }
    for waiter in state.idleWaiters { state.outbox.append { waiter.end() } }
    state.idleWaiters = []
  }

  // MARK: Holds

  func hold() -> ObservationToken {
    recorder?.didHold()
    handle(.hold)
    return ObservationToken { [weak self] in self?.handle(.release) }
  }

  // MARK: Sleeps

  func add(_ sleeper: Sleeper, until deadline: MonotonicTime) {
    let isClosed = change { state, _ in
      guard !state.machine.isClosed else { return true }
      state.timers.add(sleeper, at: deadline)
      self.wakeTimerWaiters(&state)
      return false
    }.result
    if isClosed {
      // Not at once: a loop that ignores the error must not spin.
      Task.detached {
        try? await Task.sleep(for: .milliseconds(100))
        sleeper.end(throwing: CancellationError())
      }
    }
    // Cancelled between its beginning and now: whoever cancelled has not found it here.
    if sleeper.hasEnded { remove(sleeper) }
  }

  func remove(_ sleeper: Sleeper) { change { state, _ in state.timers.remove(sleeper) } }

  // MARK: The end of the subject

  /// Closes the core, since the subject is deallocated: restores what was changed, ends waits, and ends the threads.
  ///
  /// After a `run` that ends the process, the signal handlers are kept: a signal before exit(3) must not replace the
  /// exit's code.
  func close() {
    let isExiting = state.withLock { $0.keptAlive != nil }
    if !isExiting { closeSources() }
    handle(.close)
    state.withLock { $0.readiness }?.set(false, number: .max)
    let (entries, streams, sleepers, rounds, posters) = state.withLock { state in
      defer {
        state.streams = [:]
        state.rounds = [:]
        state.posters = [:]
      }
      return (
        state.observers.removeAll(), state.streams.values.map(\.finish),
        state.timers.removeExpired(at: .distantFuture), Array(state.rounds.values),
        Array(state.posters.values)
      )
    }
    withExtendedLifetime(entries) {}
    for rounds in rounds { rounds.close() }
    for finish in streams { finish() }
    // Posts that waited for their turn: nobody receives them any more.
    let nobody = LifecycleReport(cause: LifecycleCause(.api), entries: [])
    for poster in posters { poster(nobody) }
    for sleeper in sleepers { sleeper.end(throwing: CancellationError()) }
    for driver in takeRestingDrivers() { driver.endRest() }
    if !isExiting { executor.close() }
  }
}
