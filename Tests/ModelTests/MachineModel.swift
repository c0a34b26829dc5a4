// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

@testable import DaemonLifecycle

/// The machine and the world around it, for `StateExplorer`: what signals, users, hooks and the clock can do to it.
///
/// Time passes only to where the machine has something to do, so that no state is left out for being at another time.
/// Hooks end, throw or hang; those that hang are what the clock comes to.
struct MachineModel {
  /// What differs from one exploration to the next.
  struct Setup: Sendable, CustomStringConvertible {
    var observers = 0
    var isConcurrent = false
    var drains = false
    /// A work that may fail, or return, before it is ready.
    var work: WorkOptions.Form?
    /// Observers come after the launch as well.
    var joinsLate = false

    var description: String {
      let what = [
        (isConcurrent, "concurrent"), (drains, "draining"), (joinsLate, "joining late"),
        (work == .foreground, "with work"),
        (work == .task, "with work throughout"),
      ].filter(\.0).map(\.1)
      let plural = observers == 1 ? "observer" : "observers"
      return (["\(observers) \(plural)"] + what).joined(separator: ", ")
    }
  }

  enum Event {
    case launch, exitExpected
    case workIsReady, workReturns, workFails
    case workProgresses(Bool)
    case background, foreground, sleep, delayedSuspend, resume
    case reload, save, pressure, post
    case nestedPost(Int)
    case checkHealth, poolAnswers
    case hold, release, terminate, signal
    case add(Int)
    case remove(Int)
    case begin(Int)
    case complete(Int)
    case fail(Int)
    case goes(Int)
    case extend(Int)
    case clock
  }

  struct Observer: Sendable {
    enum Presence: Int, Sendable { case expected, present, removed }
    var presence = Presence.expected
    /// Once it was added.
    var id = ObserverID(value: 0)
    var history = ObserverHistory()
  }

  /// Shared by all states that have come to be from it; never changed once it is in one.
  private final class Shared {
    var machine: LifecycleMachine
    init(_ machine: consuming LifecycleMachine) { self.machine = machine }
  }

  private struct Note: CustomNotification {}

  private static let ordinaryPost = LifecyclePost(Note())
  private static let postInHook = LifecyclePost(Note())

  let setup: Setup
  private var shared: Shared
  private var now = MonotonicTime(nanoseconds: 0)
  private(set) var observers: [Observer]
  /// Posts that have no answer yet.
  private var openPosts: Set<ObjectIdentifier> = []
  private var isSleepAwaited = false
  private var isLaunched = false
  /// Once it is added.
  private var workID = ObserverID(value: 0)
  private var workRun: UInt64?
  private var workIsAsked = false
  private var wasTerminating = false
  private var isRunAwaited = false
  /// The check that Swift's pool has not answered.
  private var poolRound: UInt64?
  private var exit: LifecycleExit?
  private var hasExitedNow = false
  private(set) var violation: String?

  init(_ setup: Setup) {
    self.setup = setup
    var configuration = LifecycleConfiguration(
      hookTimeout: .seconds(10), cancellationGrace: .seconds(1), stopTimeout: .seconds(15),
      saveReserve: .seconds(5), exitGrace: .seconds(2), logging: .off)
    if setup.drains { configuration.stopDelay = .seconds(3) }
    shared = Shared(LifecycleMachine(.init(configuration: configuration)))
    observers = Array(repeating: Observer(), count: setup.observers)
    if !setup.joinsLate {
      for index in observers.indices { apply(.add(index)) }
    }
    if let form = setup.work {
      let work = WorkOptions(
        form: form, drains: true, readyWithin: .seconds(8), stallsAfter: .seconds(20),
        restarts: .backoff(initialDelay: .seconds(1), maximumDelay: .seconds(1), maximumFailures: 1)
      )
      workID = shared.machine.registry.members.nextID(100)
      give(
        .add(
          Member(
            id: workID, phase: LifecyclePhase(order: 1), name: .given("work"), receives: [],
            timeout: .seconds(5), work: work)))
    }
  }

  func after(_ event: Event) -> Self {
    var next = self
    next.shared = Shared(shared.machine.copy())
    next.apply(event)
    next.checkInvariants()
    return next
  }

  // MARK: What may happen

  var events: [Event] {
    if hasExitedNow || violation != nil { return [] }
    var events: [Event] = []
    addCalls(to: &events)
    if shared.machine.deadline != .distantFuture { events.append(.clock) }
    if workRun != nil { events += [.workReturns, .workFails] }
    if case .running(let run)? = shared.machine.works[workID]?.state, !run.isReady {
      events.append(.workIsReady)
    }
    if workIsAsked { events += [.workProgresses(true), .workProgresses(false)] }
    if poolRound != nil { events.append(.poolAnswers) }
    if exit != nil {
      if !isRunAwaited { events.append(.exitExpected) }
      return events
    }
    addRequests(to: &events)
    return events
  }

  private func addRequests(to events: inout [Event]) {
    let registry = shared.machine.registry
    if !isLaunched { events.append(.launch) }
    events += [.terminate, .signal]
    if registry.termination == nil {
      events += [.background, .foreground, .sleep, .delayedSuspend, .resume]
      events += [.reload, .save, .pressure]
      events.append(registry.isHeld ? .release : .hold)
      if !openPosts.contains(ObjectIdentifier(Self.ordinaryPost)) { events.append(.post) }
    }
    if !shared.machine.health.isChecking, poolRound == nil, registry.termination == nil {
      events.append(.checkHealth)
    }
    for (index, observer) in observers.enumerated() {
      switch observer.presence {
      case .expected: events.append(.add(index))
      case .present: events.append(.remove(index))
      case .removed: break
      }
    }
  }

  private func addCalls(to events: inout [Event]) {
    for (index, id) in liveCalls.enumerated() {
      guard let call = shared.machine.calls.find(id), call.member.work == nil else { continue }
      if call.progress < .begun {
        events.append(call.isAbandoned ? .complete(index) : .begin(index))
        if !call.isAbandoned { events.append(.goes(index)) }
        continue
      }
      events += [.complete(index), .fail(index)]
      if call.isAbandoned { continue }
      if !openPosts.contains(ObjectIdentifier(Self.postInHook)) {
        events.append(.nestedPost(index))
      }
      if !call.isCancelled, now.duration(to: call.deadline) <= .seconds(10) {
        events.append(.extend(index))
      }
    }
  }

  /// In an order that is the same in equal states.
  private var liveCalls: [CallID] {
    let running = shared.machine.calls.deliveryIDs.flatMap { shared.machine.calls[$0].running }
    let unfinished = shared.machine.calls.unfinished
      .sorted { $0.key.value < $1.key.value }.flatMap(\.value)
    return running + unfinished
  }

  // MARK: What happens

  private mutating func apply(_ event: Event) {
    switch event {
    case .launch:
      isLaunched = true
      give(.launch { _ in })
    case .background: give(.pause(for: .operator))
    case .foreground: give(.resume(for: .operator))
    case .sleep, .delayedSuspend:
      if case .delayedSuspend = event { give(.sleepDelay(.seconds(4))) }
      isSleepAwaited = true
      give(.sleep)
    case .resume: give(.wakeUp)
    case .reload: give(.reload)
    case .save: give(.saveState)
    case .pressure: give(.pressure)
    case .terminate: give(.terminate)
    case .signal: signal()
    case .hold: give(.hold)
    case .release: give(.release)
    case .exitExpected:
      isRunAwaited = true
      give(.exitExpected)
    case .clock: passTime()
    default: applyRest(event)
    }
  }

  private mutating func applyRest(_ event: Event) {
    switch event {
    case .workReturns, .workFails:
      guard let run = workRun.take() else { return }
      var failure: DaemonLifecycle.Failure?
      if case .workFails = event { failure = DaemonLifecycle.Failure(SimulatedFailure()) }
      give(.work(workID, .ended(run: run, failure)))
    case .workIsReady: if let workRun { give(.work(workID, .ready(run: workRun))) }
    case .workProgresses(let goesOn):
      workIsAsked = false
      if let workRun { give(.work(workID, .progressed(run: workRun, at: goesOn ? now : nil))) }
    case .post: post(Self.ordinaryPost, inside: nil)
    case .nestedPost(let call): post(Self.postInHook, inside: liveCalls[call])
    case .checkHealth: give(.event(LifecycleEvent(.checkHealth, cause: LifecycleCause(.api))))
    case .poolAnswers:
      guard let round = poolRound.take() else { return }
      give(.healthAnswer(.pool(round: round)))
    case .add(let index): add(index)
    case .remove(let index):
      observers[index].presence = .removed
      give(.remove([observers[index].id]))
    case .begin(let call): begin(liveCalls[call])
    case .complete(let call): end(liveCalls[call], .completed)
    case .fail(let call): end(liveCalls[call], .failed(DaemonLifecycle.Failure(SimulatedFailure())))
    case .goes(let call):
      let id = liveCalls[call]
      observers[index(of: id)].presence = .removed
      give(.ended(id, .gone))
    case .extend(let call): give(.extend(liveCalls[call], by: .seconds(5)))
    default: break
    }
  }

  private mutating func give(_ kind: LifecycleRequest) {
    give(.event(LifecycleEvent(kind, cause: LifecycleCause(.api))))
  }

  private mutating func signal() {
    let cause = LifecycleCause(.signal(.sigterm, pid: 1, uid: 0))
    give(.event(LifecycleEvent(.terminate, cause: cause)))
  }

  private mutating func post(_ post: LifecyclePost, inside call: CallID?) {
    openPosts.insert(ObjectIdentifier(post))
    give(.post(post, inside: call))
  }

  private static let receives: [ObjectIdentifier?] =
    NotificationKind.allCases.map { ObjectIdentifier($0.row.type) } + [ObjectIdentifier(Note.self)]

  private func index(of call: CallID) -> Int {
    Int(shared.machine.calls.find(call)?.observer.value ?? 1) - 1
  }

  private mutating func add(_ index: Int) {
    observers[index].presence = .present
    observers[index].id = shared.machine.registry.members.nextID(UInt64(index + 1))
    let phase = LifecyclePhase(order: 0, isConcurrent: setup.isConcurrent)
    give(
      .add(
        Member(
          id: observers[index].id, phase: phase, name: .type(Note.self), receives: Self.receives)))
  }

  /// To the next time at which the machine has something to do, and until it has done it.
  private mutating func passTime() {
    now = max(now, shared.machine.deadline)
    for _ in 0..<20 where shared.machine.deadline <= now { give(.clock) }
    if shared.machine.deadline <= now { fail("its deadline is over, and stays") }
    for id in liveCalls {
      guard let call = shared.machine.calls.find(id), call.isAbandoned || call.isCancelled,
        call.member.work == nil
      else { continue }
      observers[index(of: id)].history.noteFailure(of: call.step)
    }
  }

  // MARK: Hooks

  private mutating func begin(_ id: CallID) {
    guard let call = shared.machine.calls.find(id) else { return fail("unknown call") }
    if !shared.machine.calls.move(id, to: .begun) { fail("a call that is under way may not begin") }
    let index = index(of: id)
    if observers[index].presence != .present { fail("called after its removal") }
    let isNested = shared.machine.calls[call.delivery].isNested
    if !isNested, !call.step.isSave, shared.machine.calls.unfinished[call.observer] != nil {
      fail("\(call.step.name) beside an abandoned hook of the same observer")
    }
    if !isNested, observers[index].history.isTerminated { fail("\(call.step.name) after the end") }
    if index == 1, !setup.isConcurrent, case .kind(.willEnterForeground) = call.step,
      observers[0].presence == .present, observers[0].history.hasMissedForeground
    {
      fail("rounds begin although a hook before them has failed")
    }
    if let problem = observers[index].history.receive(call.step) { fail(problem) }
  }

  private mutating func end(_ id: CallID, _ end: LifecycleMachine.CallEnd) {
    if case .failed = end, let call = shared.machine.calls.find(id) {
      observers[index(of: id)].history.noteFailure(of: call.step)
    }
    // One that was abandoned, and completes, has entered all the same.
    if case .completed = end, let call = shared.machine.calls.find(id), call.isAbandoned,
      call.step.kind == .willEnterForeground
    {
      observers[index(of: id)].history.hasMissedForeground = false
    }
    give(.ended(id, end))
  }

  // MARK: What comes out

  private mutating func give(_ input: LifecycleMachine.Input) {
    wasTerminating = shared.machine.isTerminating
    var effects = shared.machine.take(input, at: now)
    if effects.exitsWith != nil { hasExitedNow = true }
    for message in effects.messages { receive(message) }
    if let round = effects.healthRound { poolRound = round }
    for (id, _, action) in effects.works where id == workID { perform(action) }
    for call in effects.takeStarts() {
      guard let observer = shared.machine.calls.find(call)?.observer else { continue }
      if observers[Int(observer.value) - 1].presence != .present {
        fail("a call of one that was removed")
      }
    }
  }

  private mutating func perform(_ action: Work.Action) {
    switch action {
    case .begin(let run, _):
      if workRun != nil { fail("two runs of one work") }
      if wasTerminating { fail("a run begins in a stop") }
      workRun = run
    case .askForProgress: workIsAsked = true
    case .finish, .cancel: if workRun == nil { fail("asked to end, and does not run") }
    case .answer: fail("nobody waits for it")
    }
  }

  private mutating func receive(_ message: Effects.Message) {
    switch message {
    case .answered(let post, _):
      if openPosts.remove(ObjectIdentifier(post)) == nil { fail("a post was answered twice") }
    case .exited(let exit, _):
      if self.exit != nil { fail("ended twice") }
      self.exit = exit
      if let problem = ObserverHistory.problem(of: exit)
        ?? ObserverHistory.missedCall(in: exit, of: shared.machine.stop.budget)
      {
        fail(problem)
      }
    case .fact(.readyToSleep):
      if !isSleepAwaited { fail("ready for a sleep that nobody announced") }
      isSleepAwaited = false
    default: break
    }
  }

  private mutating func fail(_ text: String) { if violation == nil { violation = text } }

  // MARK: What always holds

  private mutating func checkInvariants() {
    if hasExitedNow { return }
    checkPhases()
    checkCalls()
    if isAtRest { checkRest() }
  }

  private mutating func checkPhases() {
    let isStopping = shared.machine.stop.start != nil || shared.machine.stop.exit != nil
    if isStopping != (shared.machine.registry.termination != nil), exit == nil {
      fail("the stop has begun for one half of the machine")
    }
    if shared.machine.isTerminating, shared.machine.health.isChecking {
      fail("a health check goes on while it stops")
    }
    if let transition = shared.machine.registry.transition, transition.next == nil,
      shared.machine.calls.current == nil
    {
      fail("a transition that is over goes on")
    }
    // A hook that has not waited for its post may leave that under way.
    if exit != nil, shared.machine.calls.deliveryIDs.isEmpty, !openPosts.isEmpty {
      fail("a post has no answer at the end")
    }
    if exit != nil, isSleepAwaited { fail("logind waits for the end") }
  }

  private mutating func checkCalls() {
    let order = shared.machine.calls.deliveryIDs
    if order.count(where: { !shared.machine.calls[$0].isNested }) > 1 {
      fail("two deliveries at once")
    }
    var begun: Set<ObserverID> = []
    for id in order {
      let delivery = shared.machine.calls[id]
      if delivery.running.isEmpty { fail("a delivery that waits for nothing") }
      for (slot, call) in delivery.running.enumerated() {
        guard let call = shared.machine.calls.find(call) else { return fail("a call that is gone") }
        if call.runningIndex != slot || call.delivery != id || call.isAbandoned {
          fail("a lost call")
        }
        if call.next < delivery.earliest { fail("the clock comes too late for a call") }
        if call.deadline < call.began { fail("a deadline before the beginning") }
        // A hook and the post that it made may both be waited for once more.
        if delivery.isNested || call.step.isSave || call.wait == .again { continue }
        if !begun.insert(call.observer).inserted { fail("two calls of one observer") }
      }
    }
    let unfinished = shared.machine.calls.unfinished
    if unfinished.values.contains(where: \.isEmpty) { fail("an empty list of unfinished calls") }
  }

  private var isAtRest: Bool {
    shared.machine.isIdle && shared.machine.calls.count == 0 && exit == nil && isLaunched
      && !shared.machine.registry.isHeld && shared.machine.stop.deadline == .distantFuture
      && shared.machine.unentered.deadline == .distantFuture
      && shared.machine.works.deadline == .distantFuture
  }

  /// Everybody is where the daemon is.
  private mutating func checkRest() {
    let registry = shared.machine.registry
    if !registry.isIdle { fail("at rest with something to do") }
    if registry.termination != nil { fail("at rest instead of at its end") }
    if isSleepAwaited { fail("at rest, and logind waits") }
    if registry.isServing, !shared.machine.isReady, shared.machine.works.all.allSatisfy(\.isReady) {
      fail("at rest in the foreground, not ready")
    }
    if let work = shared.machine.works[workID], workRun == nil, registry.isServing,
      !shared.machine.unentered.retried.contains(work.id), case .resting = work.state
    {
      fail("at rest work does not run")
    }
    for observer in observers where observer.presence == .present {
      let problem = observer.history.problemAtRest(registry)
      if let problem { fail(problem) }
    }
  }
}

extension MachineModel: ExplorableModel {
  /// Whether a SIGTERM that comes now ends the daemon in time, whatever its hooks do: all of them hang.
  ///
  /// - Parameter known: States that have been seen on the way to an end.
  func endsAfterSignal(_ known: inout Set<StateKey>) -> Bool {
    if exit != nil || hasExitedNow { return true }
    var state = self
    if shared.machine.registry.termination == nil { state = after(.signal) }
    var seen: [StateKey] = []
    let limit = state.now.advanced(by: .seconds(60))
    while state.exit == nil, !known.contains(state.key) {
      seen.append(state.key)
      guard state.shared.machine.deadline < limit, state.violation == nil else { return false }
      state = state.after(.clock)
    }
    known.formUnion(seen)
    return true
  }

  // MARK: What states differ in

  var key: StateKey {
    var key = StateKey()
    for observer in observers {
      key.add(observer.presence.rawValue)
      key.add(observer.history.isLaunched)
      key.add(observer.history.isInForeground)
      key.add(observer.history.isAsleep)
      key.add(observer.history.hasLaunchFailed)
      key.add(observer.history.isTerminated)
    }
    for bit in [
      isSleepAwaited, isLaunched, workRun != nil, workIsAsked,
      isRunAwaited, poolRound != nil,
      exit != nil, hasExitedNow, openPosts.contains(ObjectIdentifier(Self.ordinaryPost)),
      openPosts.contains(ObjectIdentifier(Self.postInHook)),
    ] { key.add(bit) }
    key.add(Int(exit?.exitStatus ?? -1))
    shared.machine.add(to: &key, at: now)
    return key
  }
}
