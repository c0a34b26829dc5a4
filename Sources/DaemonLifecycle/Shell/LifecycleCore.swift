// SPDX-License-Identifier: Apache-2.0
import CLinux
package import DaemonSystemd
import Synchronization

/// The core of a subject: the machine and what it can't contain (observers, tasks, continuations), under one lock.
///
/// Data flows in one direction: an input enters with `handle`, the machine decides, and its effects are
/// performed outside of the lock. No user code runs under the lock, and nothing here decides about
/// calls.
///
/// The order of locks: under `state` only the poll's is taken, at a third signal that of the author's log and, in a test,
/// those of its harness and of its substitute for `_exit`; under these none. `openParts` is taken before a part's own lock,
/// a call's before those of cancellation handlers, `state` among them, and the preservation's before those that its making
/// takes. No other two locks of the core are held at once.
@_documentation(visibility: internal)
public final class LifecycleCore: TimeKeeper, Sendable {
  /// Access only while holding `state`'s lock.
  struct State: ~Copyable {
    var machine: LifecycleMachine
    /// The machine's effects. Between two critical sections only messages are left, while a thread sends.
    var effects: Effects {
      _read { yield machine.effects }
      _modify { yield &machine.effects }
    }
    /// Finds the observers of the machine's table.
    var index = ObserverIndex()
    /// Whether a thread sends messages: one at a time does.
    var isSending = false
    /// Resumptions of tasks on Swift's pool that wait until it has a thread; `nil` while none has to wait.
    var heldResumptions: [@Sendable () -> Void]?
    /// The set-up, until it has ended.
    var setUp: Task<Void, any Error>?
    /// In the order in which they were made.
    var streams: [StreamSubscriber] = []
    var timers = TimerQueue()
    /// The job that terminates the service: `nil` while unknown, `.some(nil)` if there is none or it can't be read.
    var unitJob: UnitJob??
    /// The sleeps of callers that wait for the job while the daemon terminates.
    var unitJobWaiters: [Sleeper] = []
    /// Whether a source reads the service manager's job when a drain, and when the termination, begins.
    var asksForUnitJob: Bool
    /// The receivers of facts. `nil` until the start: facts wait in `earlyFacts`.
    var parts: [any LifecyclePart]? {
      didSet { showingParts = parts?.filter(\.showsReadiness) ?? [] }
    }
    var earlyFacts: [LifecycleFact] = []
    /// The parts that show whether the daemon is ready; most daemons have none.
    private(set) var showingParts: [any LifecyclePart] = []
    /// Grows with each critical section that shows readiness to probes.
    var readinessNumber: UInt64 = 0
    var lastID: UInt64 = 0
    var isStarted = false
    /// This core, while the process is about to be ended: the subject may be gone by then.
    var keptAlive: LifecycleCore?

    mutating func handle(_ input: consuming LifecycleMachine.Input, at now: MonotonicTime) {
      machine.handle(input, at: now)
    }

    mutating func newID() -> UInt64 {
      lastID += 1
      return lastID
    }
  }

  package let configuration: LifecycleConfiguration
  let executor: HookExecutor
  let callerExecutor: CallerExecutor
  /// The time of a test; `nil` for the kernel's.
  let virtualTime: VirtualTime?
  /// The harness of a mock; `nil` in a daemon.
  package let harness: (any LifecycleHarness)?
  /// Ends the process: `_exit`, or a test's substitute.
  let exitProcess: @Sendable (Int32) -> Void
  let state: Mutex<State>
  private let isTracing = Atomic<Bool>(false)
  let awake = Mutex(AwakeLock())
  let openParts = Mutex<[OpenPart]>([])
  /// The descriptors and bytes that the service manager keeps between two runs.
  let preservation: PreservationSlot

  /// - Parameter parts: `nil` where `connect` will bring them.
  init(
    configuration: LifecycleConfiguration, initialState: LifecycleState = .launching,
    virtualTime: VirtualTime? = nil, executor: HookExecutor = HookExecutor(),
    harness: (any LifecycleHarness)? = nil,
    parts: [any LifecyclePart]? = [],
    watchdogPeriod: Duration? = nil, asksForUnitJob: Bool = false,
    preservation: PreservationSlot? = nil,
    exitProcess: @escaping @Sendable (Int32) -> Void = { _exit($0) }
  ) {
    self.configuration = configuration
    self.executor = executor
    callerExecutor = CallerExecutor(executor)
    self.virtualTime = virtualTime
    self.harness = harness
    self.preservation = preservation ?? PreservationSlot(configuration)
    self.exitProcess = exitProcess
    let policy = LifecycleMachine.Policy(
      configuration: configuration,
      hasServiceManager: parts?.contains { $0.isServiceManager } ?? false,
      watchdogPeriod: watchdogPeriod)
    state = Mutex(
      State(
        machine: LifecycleMachine(policy, state: initialState), asksForUnitJob: asksForUnitJob))
    state.withLock { state in
      state.parts = parts
      state.effects.announces = harness != nil
    }
    executor.client = self
  }

  /// Takes the parts and the policy of the start, before the launch.
  func connect(_ wiring: LifecycleWiring, _ policy: LifecycleMachine.Policy) {
    let asksForUnitJob = wiring.busInputs.contains { $0.kind == .unitJob }
    for follow in wiring.followers { follow(self) }
    change { [parts = wiring.parts] state, _ in
      state.machine.setPolicy(policy)
      state.parts = parts
      state.asksForUnitJob = asksForUnitJob
      state.effects.messages.insert(contentsOf: state.earlyFacts.map { .fact($0) }, at: 0)
      state.earlyFacts = []
    }
  }

  func markStarted() throws(LifecycleError) {
    let isFirst = state.withLock { state in
      defer { state.isStarted = true }
      return !state.isStarted
    }
    guard isFirst else { throw .alreadyStarted }
  }

  func markStopped() { state.withLock { $0.isStarted = false } }

  deinit { executor.close() }

  package var now: MonotonicTime { virtualTime?.now ?? .now() }
  var randomShare: Double { virtualTime?.randomShare ?? .random(in: 0..<1) }
  @inline(never) package var lifecycleState: LifecycleState {
    harness?.initialState ?? state.withLock { $0.machine.registry.state }
  }
  @inline(never) var isTerminating: Bool { state.withLock { $0.machine.isTerminating } }

  // MARK: Inputs

  /// Takes one input in; from any thread. Out of line: the machine is inlined here, and there are many callers.
  @inline(never)
  func handle(_ input: LifecycleMachine.Input) {
    change { state, now in state.handle(input, at: now) }
  }

  /// Takes an event from outside; from any thread.
  @inline(never)
  package func receive(_ event: LifecycleEvent) {
    if let harness, isDelayed(.event(event), by: harness) { return }
    receive(.event(event))
    if case .describe = event.request { logThreads("Described") { .info($0) } }
  }

  /// Takes what a work says of its readiness; from any thread.
  func receive(_ input: LifecycleMachine.WorkInput, of id: ObserverID) { receive(.work(id, input)) }

  private func receive(_ input: LifecycleMachine.Input) {
    let isTooFast = change { state, now in
      state.handle(input, at: now)
      return state.effects.messages.count > 16 * Self.mostMessages
    }
    // Slows a loop down: otherwise its messages would wait without a bound, and the stop's behind them.
    if isTooFast, !executor.isOnListener { usleep(1000) }
  }

  /// Logs where threads wait; one trace at a time. On a thread of its own: it may wait for a lock of the dynamic linker
  /// that a hook holds.
  func logThreads(_ occasion: String, as fact: @escaping @Sendable (String) -> LifecycleFact) {
    guard let trace = configuration.trace else { return }
    // Weak: a trace that waits for ever must not retain the core.
    let log: @Sendable (String) -> Void = { [weak self] text in
      self?.handle(.fact(fact("\(occasion): \(text).")))
    }
    if isTracing.exchange(true, ordering: .acquiring) { return log("a trace is under way") }
    let begins = Thread.spawn(named: "lifecycle-trace") { [weak self] in
      for sentence in trace() { log(sentence) }
      self?.isTracing.store(false, ordering: .releasing)
    }
    if begins { return }
    isTracing.store(false, ordering: .releasing)
    log("there is no thread for a trace")
  }

  func warn(_ sentence: String) { handle(.fact(.warning(sentence))) }

  /// Ends a call. Returns the next call for its task, unless that was cancelled: a call that this end has begun, or one
  /// that waits for a thread.
  func ended(_ call: HookCall, _ end: LifecycleMachine.CallEnd) -> HookCall? {
    let goesOn = call.end()
    ReleasePool.open()
    var errands = Errands()
    let hasDeadline = state.withLock { state in
      let now = now
      state.handle(.ended(call.id, end), at: now)
      return endSection(&state, &errands)
    }
    let next = goesOn ? errands.next.take() : nil
    finish(errands, hasDeadline)
    // Not here: a deinit that blocks must not keep the next call from being made.
    if let released = ReleasePool.close() { executor.enqueue(.work { _ = released }) }
    // The executor's calls are all of this type.
    return next
      ?? (goesOn ? executor.takeHook().map { unsafeDowncast($0, to: HookCall.self) } : nil)
  }

  /// Moves a call on. Returns whether its hook may run; false once it was abandoned or withdrawn.
  func move(_ id: CallID, to progress: Call.Progress) -> Bool {
    state.withLock { $0.machine.calls.move(id, to: progress) }
  }

  /// Returns the deadline of a call; `nil` once it has ended or was abandoned.
  func deadline(of id: CallID) -> MonotonicTime? {
    state.withLock { state in
      state.machine.calls.isCurrent(id) ? state.machine.calls[id].deadline : nil
    }
  }

  // MARK: The critical section

  /// Changes the state, and does afterwards what must not be done under the lock.
  @discardableResult
  func change<T: Sendable>(_ body: (inout State, MonotonicTime) -> T) -> T {
    ReleasePool.open()
    defer { _ = ReleasePool.close() }
    var errands = Errands()
    let (result, hasDeadline): (T, Bool) = state.withLock { state in
      let now = now
      let result = body(&state, now)
      return (result, endSection(&state, &errands))
    }
    finish(errands, hasDeadline)
    return result
  }

  private func finish(_ errands: consuming Errands, _ hasDeadline: Bool) {
    if hasDeadline { executor.listenIfMissing() }
    if errands.isLeft { perform(errands) }
  }

  /// Ends a critical section: turns its effects into errands. Returns whether there is a deadline. Out of line, since
  /// `change` has a copy for each of its callers.
  @inline(never)
  private func endSection(_ state: inout State, _ errands: inout Errands) -> Bool {
    if let harness { ended(&state, harness) }
    bindStarts(&state, &errands)
    if state.effects.hasRare { bindRare(&state, &errands) }
    errands.readiness = nextReadiness(&state)
    if !state.effects.messages.isEmpty, !state.isSending {
      state.isSending = true
      errands.mail = takeMail(&state)
    }
    executor.abandonedHooks.store(state.machine.calls.abandonedCount, ordering: .relaxed)
    if state.machine.stop.exitDeadline != .distantFuture { state.keptAlive = self }
    return arm(state)
  }

  /// Under the lock, so that a later deadline can't overwrite an earlier one computed after it.
  func arm(_ state: borrowing State) -> Bool {
    guard virtualTime == nil else { return false }
    // What was left by a thread that sent enough is sent at once, whoever sets a later time meanwhile.
    let isLeft = !state.isSending && !state.effects.messages.isEmpty
    let deadline = isLeft ? now : nextDeadline(state)
    executor.poll.arm(at: deadline)
    return deadline != nil
  }

  /// The next deadline: a sleep's or the machine's. Inlined like `LifecycleMachine.deadline`.
  @inline(__always) func nextDeadline(_ state: borrowing State) -> MonotonicTime? {
    let next = min(state.timers.first ?? .distantFuture, state.machine.deadline)
    return next == .distantFuture ? nil : next
  }

  typealias ShownReadiness = (parts: [any LifecyclePart], isReady: Bool, number: UInt64)

  /// The readiness to show to probes, with a number that grows; `nil` without a part for it. Taken at the end of
  /// every critical section, so that no thread can start a hook before the readiness that its event causes is shown.
  func nextReadiness(_ state: inout State) -> ShownReadiness? {
    if state.showingParts.isEmpty { return nil }
    state.readinessNumber += 1
    return (state.showingParts, state.machine.isReady, state.readinessNumber)
  }

  // MARK: Holds

  func hold() -> LifecycleToken {
    harness?.didCall("holdDeliveries()")
    handle(.hold)
    return LifecycleToken { [weak self] in self?.handle(.release) }
  }

  // MARK: The end of the subject

  /// Closes the core, since the subject is deallocated: restores what was changed, ends waits, and ends the threads.
  ///
  /// After a `run` that ends the process, the signal handlers are kept: a signal before exit(3) must not replace the
  /// exit's code.
  package func close() {
    let isExiting = state.withLock { $0.keptAlive != nil }
    if !isExiting { closeParts() }
    handle(.close)
    for part in state.withLock({ $0.showingParts }) { part.show(false, number: .max) }
    endStreams()
    let sleepers = state.withLock { $0.timers.removeExpired(at: .distantFuture) }
    for sleeper in sleepers { sleeper.end(throwing: CancellationError()) }
    if !isExiting { executor.close() }
  }
}
