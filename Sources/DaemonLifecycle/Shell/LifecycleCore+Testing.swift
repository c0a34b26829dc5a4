// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd
import Synchronization

/// A recorder of the inputs and outputs of a core, for the mock.
///
/// It is called without a lock of the core, on any thread; `didFinish` and `willDeliver` in the order of the facts.
package protocol LifecycleRecorder: AnyObject, Sendable {
  func didAdd(_ observer: any LifecycleObserver)
  func didObserve(_ observer: String)
  func didRemove(_ observerOrOwner: AnyObject)
  func didPost(_ notification: any LifecycleNotification)
  func didHold()
  func didTerminate()
  func willDeliver(_ notification: any LifecycleNotification)
  func didFinish(_ report: LifecycleReport)
}

// The parts of a core that the test kit uses. The mock is the same core with a clock that a test moves, no sources, and
// no process to end. Code for waiting is in the test kit, since every daemon contains what is here.
extension LifecycleCore {
  /// - Parameter pool: The executor of work in the foreground, for an exploration, which performs what `takeReady` returns;
  ///   `nil` for Swift's pool, and threads.
  package convenience init(
    testing configuration: LifecycleConfiguration, initialState: LifecycleState,
    pool: (any TaskExecutor)?, recorder: any LifecycleRecorder, notifyAddress: String?,
    preservation: @escaping @Sendable () throws(SystemdError) -> Preservation,
    exitProcess: @escaping @Sendable (Int32) -> Void
  ) {
    let log = LifecycleLog(
      journal: nil, logging: configuration.logging == .off ? .off : .problems)
    var wiring = LifecycleWiring(configuration.environment, isSupervised: false) { log.warn($0) }
    if let notifyAddress, let socket = try? NotifySocket(address: notifyAddress) {
      wiring.sinks.append(NotifySink(socket, waits: true, warn: wiring.warn))
    }
    // Its sources are left out: the test asks for checks of health.
    wiring.connect(
      configuration.interfaces.filter { if case .local = $0.role { true } else { false } })
    for problem in wiring.problems { log.warn(problem) }
    self.init(
      configuration: configuration, virtualTime: VirtualTime(),
      executor: pool == nil
        ? HookExecutor(endsWhenIdle: true)
        : HookExecutor(endsWhenIdle: true, pool: pool, startThread: { _, _ in true }),
      recorder: recorder, sinks: [log] + wiring.sinks, readiness: wiring.readiness,
      preservation: PreservationSlot(preservation),
      exitProcess: exitProcess)
    change { state, now in
      switch initialState {
      case .launching: return
      // It has nothing to end, and has ended.
      case .terminated: return state.handle(.event(LifecycleEvent(.terminate)), at: now)
      case .background:
        state.handle(.event(LifecycleEvent(.pause(for: .operator))), at: now)
      case .foreground: break
      }
      state.mockState = initialState
    }
  }

  /// Launches a mock of a daemon at work: what was added before its test asks for something receives the launch and the
  /// foreground together, in order.
  ///
  /// - Parameter event: What is asked for. It waits for the end of that launch, which a termination would overtake.
  /// - Returns: Whether the event waits.
  @discardableResult package func endSetUp(with event: LifecycleEvent? = nil) -> Bool {
    if state.withLock({ $0.mockState != nil }) { prepareReadiness() }
    let isInside =
      HookCall.current?.core === self || ForegroundRound.current?.clock?.keeper === self
    return change { state, now in
      if state.mockState.take() != nil {
        state.isMockLaunching = true
        state.handle(.launch { _ in }, at: now)
      }
      // A hook's own is the daemon's, and so is that of work in the foreground.
      if isInside { return false }
      if case .checkHealth? = event?.request { return false }
      let waits = state.isMockLaunching && !state.machine.isIdle
      if waits, let event { state.earlyInputs.append(.event(event)) }
      return waits
    }
  }

  /// Puts a post behind what was asked for during the launch; returns false when nothing was.
  @inline(never) func queueBehindLaunch(_ post: AwaitedPost) -> Bool {
    state.withLock { state in
      if state.earlyInputs.isEmpty { return false }
      state.earlyInputs.append(.post(post, inside: nil))
      return true
    }
  }

  func receiveEarly(_ state: inout State) {
    state.isMockLaunching = false
    let early = state.earlyInputs
    state.earlyInputs = []
    for input in early { state.handle(input, at: now) }
  }

  package func event(for signal: UnixSignal, cause: LifecycleCause) -> LifecycleEvent? {
    configuration.signals.event(of: signal, cause)
  }

  package func requestLaunch() {
    prepareReadiness()
    handle(.launch { _ in })
  }

  package var isReady: Bool { state.withLock { $0.machine.isReady } }

  @inline(never) package var exit: LifecycleExit? { state.withLock { $0.machine.stop.exit } }

  /// Ends the waiter when `count` tasks or more sleep on the clock; `nil`: when nothing is being delivered and nothing
  /// waits to be, except behind a hold.
  package func end(_ waiter: Sleeper, whenSleeping count: Int?) {
    change { state, _ in state.testWaiters.append((waiter, count)) }
  }

  func endTestWaiters(_ state: inout State) {
    let (isIdle, count) = (state.machine.isIdle, state.sleeperCount)
    func isOver(_ waiter: (sleeper: Sleeper, count: Int?)) -> Bool {
      waiter.count.map { $0 <= count } ?? isIdle
    }
    for waiter in state.testWaiters where isOver(waiter) {
      state.effects.messages.append(.reached(waiter.sleeper))
    }
    state.testWaiters.removeAll(where: isOver)
  }

  /// How many tasks sleep on the clock.
  package var sleeperCount: Int { state.withLock { $0.sleeperCount } }

  package func noteSleepers() { virtualTime?.sleepers.store(sleeperCount, ordering: .relaxed) }

  /// How many tasks are to sleep: those that did when the test last waited for that; none in a pause, which ends sleeps.
  package var expectedSleepers: Int {
    let isPaused = state.withLock {
      $0.machine.isIdle && $0.machine.registry.state != .foreground
    }
    return isPaused ? 0 : virtualTime?.sleepers.load(ordering: .relaxed) ?? 0
  }

  /// Takes a job that is ready: it is performed by the call, isolated to an executor.
  package func takeReady() -> (@Sendable (UnownedSerialExecutor) -> Void)? {
    guard let item = executor.state.withLock({ $0.ready.popFirst() }) else { return nil }
    return { HookExecutor.perform(item, isolatedTo: $0) }
  }

  /// Whether nothing is being delivered, whether the daemon has been told to end, and the time of the next sleep's end.
  package var rest: (isIdle: Bool, isEnding: Bool, wakeUp: MonotonicTime?) {
    state.withLock { ($0.machine.isIdle, $0.machine.isTerminating, $0.timers.first) }
  }

  /// Whether hooks have run as far as they can, as far as the executor knows.
  package var isQuiet: Bool { executor.isQuiet }

  /// What the virtual clock reaches next, up to `limit`.
  package func nextDeadline(until limit: MonotonicTime) -> MonotonicTime? {
    if virtualTime == nil { return nil }
    return state.withLock { nextDeadline($0) }.flatMap { $0 <= limit ? $0 : nil }
  }

  package func moveClock(to instant: MonotonicTime) {
    virtualTime?.advance(to: instant)
  }

  /// Notes that a test is moving the clock.
  package func noteStep() {
    virtualTime?.steps.add(1, ordering: .relaxed)
  }

  /// One sentence for each thing that is pending.
  package var pending: [String] {
    let now = now
    return state.withLock { state in
      var pending = state.machine.pending(at: now, isHeld: true, name: Self.nameAndType)
      if state.timers.count > 0 { pending.append("\(state.timers.count) sleeping on the clock") }
      return pending
    }
  }

  /// "Orders is in its hook for ShouldSaveState (SIGHUP …)"; `nil` when no hook is running.
  package var runningHook: String? {
    state.withLock { state in
      state.machine.running(name: Self.nameAndType).first.map { "\($0.name) is \($0.place)" }
    }
  }

  /// "a run of jobs, follower"; `nil` when no work runs.
  package var runningWork: String? {
    let names = state.withLock { $0.machine.works.all.filter { $0.run != nil }.map(\.name) }
    return names.isEmpty ? nil : "a run of " + names.map(\.description).joined(separator: ", ")
  }

  private static func nameAndType(of call: Call) -> String {
    guard case .given = call.name, let type = (call.member as? ObserverEntry)?.type
    else { return call.name.description }
    return "\(call.name) (\(type))"
  }

  /// Changes when a hook begins or ends, and while a test moves the clock.
  package struct Progress: Equatable {
    fileprivate let calls: [CallID]
    fileprivate let steps: UInt64
  }

  package var progress: Progress {
    let calls = state.withLock { $0.machine.hooksUnderWay }
    return Progress(calls: calls, steps: virtualTime?.steps.load(ordering: .relaxed) ?? 0)
  }
}

extension LifecycleCore.State {
  fileprivate var sleeperCount: Int {
    timers.count + machine.works.all.count(where: \.isWaiting)
  }
}
