// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import TestSupport

@testable import DaemonLifecycle

/// A machine in virtual time, with observers whose hooks end, throw, hang or never begin: everything that may happen to a
/// daemon, at random, and what must hold all the same.
///
/// What it says of itself is checked against what the hooks have seen. `lie` falsifies what passes between the two, for
/// tests of the simulation itself.
struct MachineSimulation: ~Copyable {
  /// What a hook does once it is called.
  private enum Behaviour { case returns, fails, obeys, ignores }

  private struct Hook {
    let order: Int
    let observer: ObserverID
    let step: LifecycleStep
    let isNested: Bool
    let behaviour: Behaviour
    /// When its executor has time for it.
    let beginsAt: MonotonicTime
    let lasts: Duration
    var begun: MonotonicTime?
    var endsAt: MonotonicTime?
    var isCancelled = false
    var isAwaitedAgain = false
    var isDropped = false
  }

  private struct Observer {
    let id: ObserverID
    let phase: LifecyclePhase
    var history = ObserverHistory()
  }

  /// A work and its body, of which there is one run at a time.
  private struct SimulatedWork {
    let id: ObserverID
    let phase: LifecyclePhase
    let options: WorkOptions
    var run: UInt64 = 0
    var isRunning = false
    var isAsked = false
    var readyAt: MonotonicTime?
    var readinessChanges: UInt64 = 0
    var endsAt: MonotonicTime?
    var fails = false
    /// How long it takes once it was asked to end.
    var lasts = Duration.zero
    var isAnswered = false
  }

  private struct Note: CustomNotification {
    let kept: UserObject
  }

  /// What calls a hook: known by its call.
  private final class Caller: Sendable {
    let call: CallID
    init(_ call: CallID) { self.call = call }
  }

  private var random: SeededGenerator
  private var machine: LifecycleMachine
  private var now = MonotonicTime(nanoseconds: 0)
  private let releases = Releases()
  private let lie: MachineLie?
  private var lieCount = 0
  /// Whom the report of the transition under way must name, by the notification's type.
  private var expected: [ObjectIdentifier: Set<ObserverID>] = [:]

  private var steps = StepOracle()
  private var hooks: [CallID: Hook] = [:]
  /// Those beside which another has begun: it need not be waited for any longer.
  private var hadTurn: Set<CallID> = []
  private var observers: [Observer] = []
  private var lastID: UInt64 = 0
  private var holds = 0
  /// Those without an answer, and those that hooks have made; held, so that none gets an address that was one's.
  private var posts: [ObjectIdentifier: LifecyclePost] = [:]
  private var nestedPosts: [ObjectIdentifier: LifecyclePost] = [:]
  /// Those whose delivery has begun, and the order of all.
  private var begunPosts: Set<ObjectIdentifier> = []
  /// When the stop's saves began, and when each observer's last save ended.
  private var savesBegan: MonotonicTime?
  private var saveEnds: [UInt64: MonotonicTime] = [:]
  private var numbers: [ObjectIdentifier: Int] = [:]
  private var awaitedSleeps = 0
  /// When Swift's pool answers a check, and when the main actor answers.
  private var health: (round: UInt64, pool: MonotonicTime)?
  private var mainActor: MonotonicTime?
  private var works: [SimulatedWork] = []
  /// Work whose caller has gone on.
  private var leaving: [ObserverID] = []
  private var isSettling = false
  /// Whether it was terminating before the last input.
  private var wasTerminating = false
  private var askedToEnd: MonotonicTime?
  private var signals = 0
  /// When the service manager has last said what it allows: it may be less than what has passed.
  private var lastLimit = MonotonicTime(nanoseconds: 0)
  /// The stop's, before it had more time, by a hook or a saver that goes: what was skipped before that had no more.
  private var earlierBudget: StopBudget?
  private var started = 0
  private var recorded = 0
  private var withdrawn = 0
  /// Calls that were abandoned, and that the stop has waited for.
  private var takenBack: [UInt64] = []
  /// Calls whose observer was gone before its hook was called.
  private var vanished = 0
  /// How late the clock was in all: what the machine can't help.
  private var lateness = Duration.zero
  /// How late it was before the stop.
  private var earlierLateness = Duration.zero
  private var exit: (LifecycleExit, at: MonotonicTime)?
  private var immediateExit: Int32?

  private(set) var violation: String?
  private(set) var trace = SimulationTrace()
  /// What went in and came out, for a person; empty unless asked for.
  private(set) var story: [String] = []
  private let tellsStory: Bool

  init(seed: UInt64, lie: MachineLie? = nil, tellsStory: Bool = false) {
    random = SeededGenerator(seed: seed)
    self.lie = lie
    self.tellsStory = tellsStory
    var configuration = LifecycleConfiguration(
      hookTimeout: .seconds(random.below(10) + 1),
      cancellationGrace: .milliseconds(random.below(2000)),
      stopTimeout: random.chance(70)
        ? random.chance(80) ? .seconds(random.below(40) + 1) : .milliseconds(random.below(60))
        : nil,
      saveReserve: .seconds(random.below(8)), exitGrace: random.chance(50) ? .seconds(2) : nil,
      logging: .off)
    if random.chance(30) { configuration.stopDelay = .seconds(random.below(5)) }
    machine = LifecycleMachine(
      .init(
        configuration: configuration, hasServiceManager: random.chance(50),
        watchdogPeriod: random.chance(50) ? .seconds(4) : nil))
  }

  mutating func run() {
    for _ in 0..<random.below(5) { addObserver() }
    launch()
    for _ in 0..<(random.below(40) + 10) where violation == nil && immediateExit == nil {
      if random.chance(60) { happen() } else { passTime() }
    }
    settle()
  }

  private mutating func fail(_ text: String) { if violation == nil { violation = text } }

  // MARK: What happens

  private mutating func launch() {
    give(.launch { _ in })
    if random.chance(40) { addWork(WorkOptions(form: .task)) }
  }

  private mutating func happen() {
    switch random.below(30) {
    case 0, 1, 2:
      give(
        event: .pause(
          for:
            random.chance(70) ? BackgroundReason.operator : BackgroundReason("unit")))
    case 3, 4, 5:
      give(
        event: .resume(
          for:
            random.chance(70) ? BackgroundReason.operator : BackgroundReason("unit")))
    case 6: suspend()
    case 7: give(event: .wakeUp)
    case 8, 9: give(event: .reload)
    case 10: give(event: .saveState)
    case 11: give(event: .pressure)
    case 12, 13: post(inside: nil)
    case 14: if let call = begunHook() { post(inside: call) }
    case 15, 16: addObserver()
    case 17: removeObserver()
    case 18: random.chance(50) ? hold() : release()
    case 19: if let call = begunHook() { extend(call) }
    case 20:
      give(.watchdogTick(stall: random.chance(20) ? .seconds(1) : .zero))
    case 21:
      lastLimit = now
      give(.stopTimeout(.seconds(random.below(60) + 2)))
    case 22: if exit == nil { give(.exitExpected) }
    case 23: jump()
    case 24: hasten()
    case 25, 26: addWork()
    case 27: cancelCaller()
    default: if random.chance(35) { terminate() }
    }
  }

  private mutating func give(event kind: LifecycleRequest) {
    let event = LifecycleEvent(kind, cause: LifecycleCause(.api))
    steps.request(event, of: machine.registry)
    if !lies(.losesARequest) { give(.event(event)) }
  }

  private mutating func suspend() {
    if random.chance(60) { give(.sleepDelay(.seconds(random.below(6) + 1))) }
    awaitedSleeps = 1
    give(event: .sleep)
  }

  private mutating func terminate() {
    let isSignal = random.chance(60)
    if isSignal { signals += 1 }
    if askedToEnd == nil { askedToEnd = now }
    let cause = LifecycleCause(isSignal ? .signal(.sigterm, pid: 1, uid: 0) : .api)
    give(.event(LifecycleEvent(.terminate, cause: cause)))
  }

  private mutating func post(inside call: CallID?) {
    let post = LifecyclePost(Note(kept: UserObject(releases)))
    posts[ObjectIdentifier(post)] = post
    numbers[ObjectIdentifier(post)] = numbers.count
    if call != nil { nestedPosts[ObjectIdentifier(post)] = post }
    give(.post(post, inside: call))
  }

  /// The poster of one that waits is cancelled.
  private mutating func hasten() {
    let waiting = posts.values.filter { !begunPosts.contains(ObjectIdentifier($0)) }
    guard
      let post = waiting.min(by: { numbers[ObjectIdentifier($0)]! < numbers[ObjectIdentifier($1)]! }
      )
    else { return }
    nestedPosts[ObjectIdentifier(post)] = post
    give(.hasten(post))
    if posts[ObjectIdentifier(post)] != nil, !begunPosts.contains(ObjectIdentifier(post)) {
      fail("a post that was hastened waits")
    }
  }

  private mutating func extend(_ call: CallID) {
    earlierBudget = earlierBudget ?? machine.stop.budget
    give(.extend(call, by: .seconds(random.below(20))))
  }

  private mutating func addObserver() {
    lastID += 1
    let phases = [
      LifecyclePhase(order: -1), .standard, LifecyclePhase(order: 1, isConcurrent: true),
    ]
    let observer = Observer(
      id: machine.registry.members.nextID(lastID), phase: phases[random.below(3)])
    observers.append(observer)
    let all: [any LifecycleNotification.Type] = [
      DidFinishLaunching.self, WillEnterForeground.self, DidEnterBackground.self,
      ShouldSaveState.self, ShouldReload.self, WillSleep.self, DidWakeUp.self, Note.self,
      CheckHealth.self, WillTerminate.self,
    ]
    // Some receive no notes.
    let receives = all.filter { lastID % 4 != 1 || $0 != Note.self }
    let phase = lies(.addsToAnotherPhase) ? LifecyclePhase(order: 2) : observer.phase
    give(
      .add(
        Member(
          id: observer.id, phase: phase, name: .type(Note.self),
          receives: receives.map { ObjectIdentifier($0) },
          hooks: [.closure(for: Note.self) { [kept = UserObject(releases)] _ in _ = kept }],
          target: UserObject(releases), isOwned: true)))
  }

  private mutating func addWork() {
    var work = WorkOptions(form: random.chance(70) ? .foreground : .task)
    work.drains = random.chance(50)
    work.readyWithin = random.chance(50) ? .seconds(random.below(10) + 1) : nil
    work.stallsAfter = random.chance(50) ? .seconds(random.below(10) + 1) : nil
    work.restarts =
      random.chance(50) ? .backoff(maximumFailures: random.chance(50) ? 2 : nil) : nil
    work.mayReturn = random.chance(30)
    work.mayIdle = random.chance(30)
    work.hasCaller = work.form == .foreground && random.chance(30)
    if exit == nil { addWork(work) }
  }

  private mutating func cancelCaller() {
    let waiting = works.filter { $0.options.hasCaller && !$0.isAnswered }
    if !waiting.isEmpty { give(.work(waiting[random.below(waiting.count)].id, .callerCancelled)) }
  }

  private mutating func addWork(_ work: WorkOptions) {
    lastID += 1
    let id = machine.registry.members.nextID(lastID)
    let phase = random.chance(30) ? LifecyclePhase(order: 1, isConcurrent: true) : .standard
    works.append(SimulatedWork(id: id, phase: phase, options: work))
    give(
      .add(
        Member(
          id: id, phase: phase, name: .given("work \(lastID)"), receives: [],
          timeout: random.chance(30) ? .seconds(random.below(10)) : nil, work: work)))
  }

  // MARK: Work

  private mutating func perform(_ action: Work.Action, of id: ObserverID) {
    guard let index = works.firstIndex(where: { $0.id == id }) else { return }
    switch action {
    case .begin(let run, let isReady):
      if works[index].isRunning { fail("two runs of one work") }
      if run <= works[index].run { fail("a run begins twice") }
      if wasTerminating { fail("a run begins in a stop") }
      let isRestart = machine.works[id]?.lastFailure != nil
      if !isRestart, works[index].options.form == .foreground { checkEarlier(works[index]) }
      (works[index].run, works[index].isRunning, works[index].isAsked) = (run, true, false)
      works[index].readyAt =
        isReady ? nil : now.advanced(by: .milliseconds(random.below(isSettling ? 100 : 8000)))
      let ends = !isSettling && random.chance(50)
      works[index].endsAt = ends ? now.advanced(by: .milliseconds(random.below(60_000))) : nil
      works[index].fails = random.chance(60)
      works[index].lasts = .milliseconds(random.below(random.chance(70) ? 500 : 60_000))
    case .finish(let run), .cancel(let run):
      guard works[index].run == run, works[index].isRunning else { return }
      if case .finish = action, works[index].isAsked { fail("asked to finish twice") }
      works[index].isAsked = true
      works[index].fails = random.chance(20)
      works[index].endsAt = now.advanced(by: works[index].lasts)
    case .askForProgress(let run):
      // At rest nobody answers, or there would be no end to it.
      if isSettling { return }
      let waited = random.chance(50) ? now : nil
      give(.work(id, .progressed(run: run, at: random.chance(50) ? now : nil, waited: waited)))
    case .answer:
      if !works[index].options.hasCaller { fail("nobody waits for it") }
      works[index].isAnswered = true
      // As `foreground` does; in a stop it stays.
      if !machine.isTerminating { leaving.append(id) }
    }
  }

  /// It needs what the hooks before it provide.
  private mutating func checkEarlier(_ work: SimulatedWork) {
    let (id, phase) = (work.id, work.phase)
    let hasFailedBefore = observers.contains {
      $0.history.hasMissedForeground
        && ($0.phase == phase ? !phase.isConcurrent && $0.id < id : $0.phase < phase)
    }
    if hasFailedBefore { fail("work begins although a hook before it has failed") }
  }

  private mutating func sayReadiness(of index: Int, lack: String?) {
    works[index].readinessChanges += 1
    let (work, change) = (works[index], works[index].readinessChanges)
    give(.work(work.id, .readiness(run: work.run, lack: lack, change: change)))
    // Another thread comes late.
    if random.chance(20) {
      give(.work(work.id, .readiness(run: work.run, lack: "late", change: change - 1)))
    }
  }

  private mutating func moveWorks() {
    for work in works where work.isRunning {
      guard let index = works.firstIndex(where: { $0.id == work.id }), works[index].isRunning
      else { continue }
      if let time = works[index].readyAt, time <= now {
        works[index].readyAt = nil
        sayReadiness(of: index, lack: nil)
      } else if works[index].readyAt == nil, !isSettling, random.chance(5) {
        sayReadiness(of: index, lack: random.chance(60) ? "reason \(random.below(3))" : nil)
      }
      if let time = works[index].endsAt, time <= now {
        let failure = works[index].fails ? failure : nil
        (works[index].isRunning, works[index].endsAt, works[index].readyAt) = (false, nil, nil)
        // Its end may be the daemon's.
        if askedToEnd == nil, !works[index].isAsked { askedToEnd = now }
        give(.work(work.id, .ended(run: works[index].run, failure)))
        if !machine.isTerminating, signals == 0 { askedToEnd = nil }
      }
    }
  }

  private var failure: DaemonLifecycle.Failure {
    DaemonLifecycle.Failure(KeptFailure(kept: UserObject(releases)))
  }

  private mutating func removeObserver() {
    guard !observers.isEmpty else { return }
    let id = observers.remove(at: random.below(observers.count)).id
    give(.remove([id]))
  }

  private mutating func hold() {
    holds += 1
    if !lies(.forgetsAHold) { give(.hold) }
  }

  private mutating func release() {
    guard holds > 0 else { return }
    holds -= 1
    give(.release)
  }

  /// The machine slept, or somebody else had the processor.
  private mutating func jump() {
    let late = Duration.milliseconds(random.below(8000))
    lateness += late
    now = now.advanced(by: late)
    giveClock()
  }

  private func begunHook() -> CallID? {
    hooks.filter { $0.value.begun != nil && machine.calls.isCurrent($0.key) }
      .min { ($0.value.observer, $0.value.order) < ($1.value.observer, $1.value.order) }?.key
  }

  // MARK: Time

  /// To the next thing that is due, whoever does it.
  private mutating func passTime() {
    guard let next = nextTime() else { return }
    now = max(now, next)
    giveClock()
    moveHooks()
    moveOthers()
  }

  private func nextTime() -> MonotonicTime? {
    var next = machine.deadline
    for hook in hooks.values {
      next = min(next, hook.begun == nil ? hook.beginsAt : hook.endsAt ?? .distantFuture)
    }
    if let health { next = min(next, health.pool) }
    if let mainActor { next = min(next, mainActor) }
    for work in works where work.isRunning {
      next = min(next, work.endsAt ?? .distantFuture, work.readyAt ?? .distantFuture)
    }
    return next == .distantFuture ? nil : next
  }

  private mutating func giveClock() {
    if lie == .losesTheClock { return }
    // Cancelled with no grace, a call is abandoned at the same time; and so may the next be, where no time is left.
    for _ in 0..<30 where machine.deadline <= now {
      give(.clock)
    }
    if machine.deadline <= now { fail("the clock has something to do at a time that is over") }
    for (call, hook) in hooks where !hook.isDropped && !machine.calls.isCurrent(call) {
      if hook.begun != nil, !hook.isCancelled { fail("abandoned without having been cancelled") }
      change(hook.observer) { $0.history.noteFailure(of: hook.step) }
    }
  }

  private mutating func change(_ id: ObserverID, _ body: (inout Observer) -> Void) {
    if let index = observers.firstIndex(where: { $0.id == id }) { body(&observers[index]) }
  }

  /// In the order of their calls, so that the same seed is the same story.
  private mutating func moveHooks() {
    for (call, hook) in hooks.sorted(by: { $0.value.order < $1.value.order }) {
      guard let current = hooks[call] else { continue }
      if current.begun == nil, hook.beginsAt <= now {
        begin(call)
      } else if let time = current.endsAt, time <= now {
        end(call)
      }
    }
  }

  private mutating func moveOthers() {
    if let (round, pool) = health, pool <= now {
      health = nil
      give(.healthAnswer(.pool(round: round)))
    }
    if let time = mainActor, time <= now {
      mainActor = nil
      give(.healthAnswer(.mainActor))
    }
    moveWorks()
  }

  // MARK: Hooks

  private mutating func begin(_ call: CallID) {
    guard let hook = hooks[call] else { return }
    if !hook.isDropped, random.chance(2), machine.calls.isCurrent(call) {
      vanished += 1
      observers.removeAll { $0.id == hook.observer }
      hooks[call] = nil
      return give(.ended(call, .gone))
    }
    let isAllowed = machine.calls.move(call, to: .begun)
    let isGranted = isAllowed && !lies(.refusesAMove) || !isAllowed && lie == .grantsEveryMove
    guard isGranted else {
      hooks[call] = nil
      return give(.ended(call, .completed))
    }
    if hook.isDropped { fail("called after it was withdrawn") }
    // Its observer has received what follows.
    if !hook.isDropped, !machine.calls.isCurrent(call) { fail("called after it was abandoned") }
    hooks[call]?.begun = now
    hooks[call]?.endsAt = now.advanced(by: hook.lasts)
    if hook.isCancelled, hook.behaviour == .obeys { hooks[call]?.endsAt = now }
    hear(hook)
    if lies(.startsTwice) { hear(hook) }
  }

  private mutating func end(_ call: CallID) {
    guard let hook = hooks.removeValue(forKey: call) else { return }
    if hook.step.isSave { saveEnds[hook.observer.value] = now }
    let isFailed = hook.behaviour == .fails
    if isFailed || hook.isCancelled {
      change(hook.observer) { $0.history.noteFailure(of: hook.step) }
    }
    // One that was abandoned, and completes, has entered all the same.
    if !isFailed, hook.step.kind == .willEnterForeground, !machine.registry.isLaunchTransition,
      machine.calls.find(call)?.isAbandoned == true
    {
      change(hook.observer) { $0.history.hasMissedForeground = false }
    }
    if lies(.losesAnEnd) { return }
    give(.ended(call, isFailed ? .failed(failure) : .completed))
  }

  private mutating func hear(_ hook: Hook) {
    trace.add(hook.step.name, hook.observer.value)
    guard let index = observers.firstIndex(where: { $0.id == hook.observer }) else {
      return fail("\(hook.step.name) for an observer that was removed")
    }
    let others = hooks.values.filter {
      $0.observer == hook.observer && $0.begun != nil && !$0.isNested && $0.order != hook.order
    }
    if !hook.isNested, !hook.step.isSave, !others.isEmpty {
      fail("\(hook.step.name) beside another hook of the same observer")
    }
    if !hook.isNested, observers[index].history.isTerminated {
      fail("\(hook.step.name) after the end")
    }
    if let problem = observers[index].history.receive(hook.step) { fail(problem) }
  }

  // MARK: Effects

  private mutating func lies(_ lie: MachineLie) -> Bool {
    guard self.lie == lie else { return false }
    lieCount += 1
    return lieCount % 3 == 0
  }

  private mutating func give(_ input: LifecycleMachine.Input) {
    if machine.stop.budget == nil { earlierLateness = lateness }
    let time = lies(.turnsTheClockBack) ? now.advanced(by: .seconds(-2)) : now
    let isTerminating = machine.isTerminating
    if lie != .releasesUnderTheLock { ReleasePool.open() }
    releases.isLocked = true
    let budget = machine.stop.budget
    var effects = machine.take(input, at: time)
    releases.isLocked = false
    if machine.stop.budget?.audience.saves == false, budget?.audience.saves == true {
      earlierBudget = earlierBudget ?? budget
    }
    if releases.isWrong { fail("a user's object is let go of under the lock") }
    if lie != .releasesUnderTheLock { _ = ReleasePool.close() }
    mutate()
    let starts = effects.takeStarts()
    if tellsStory { tell(input, starts, effects) }
    if let code = effects.exitsWith {
      immediateExit = code
      if signals < 3 { fail("ended at once after \(signals) signals") }
    }
    if lies(.losesARemoval) { effects.removed = [] }
    checkRemoved(effects.removed.map(\.id), input)
    noteWithdrawn()
    noteTakenBack()
    for telling in effects.messages { hear(telling) }
    if let round = effects.healthRound { ask(round) }
    for case let caller as Caller in effects.cancels where !lies(.losesACancel) {
      cancel(caller.call)
    }
    for (id, _, action) in effects.works {
      // One that is performed before may have led to another input.
      wasTerminating = isTerminating
      perform(action, of: id)
    }
    while let id = leaving.popLast() { give(.remove([id])) }
    for call in starts where !lies(.losesAStart) { start(call) }
  }

  private var stepUnderWay: LifecycleStep? {
    machine.calls.current.map { machine.calls[$0].step }
  }

  /// Breaks a rule of the machine, where the lie is one of these.
  private mutating func mutate() {
    guard let lie, let observer = observers.last?.id else { return }
    switch lie {
    case .takesForReached:
      if let step = stepUnderWay, lies(lie) {
        machine.registry.reached(observer, step.change)
      }
    case .forgetsAReached:
      if let step = stepUnderWay, lies(lie) {
        machine.registry.notReached(observer, step)
      }
    case .forgetsAnObserver where lies(lie): _ = machine.registry.members.remove(observer)
    case .launchesAgain where lies(lie):
      if let again = machine.registry.members.remove(observer) {
        machine.registry.members.add(again)
      }
    case .forgetsACall:
      if let call = begunHook(), lies(lie) { _ = machine.calls.end(call) }
    case .losesADeadline:
      if let call = begunHook(), lies(lie) {
        machine.calls.update(call) { $0.extend(to: .distantFuture, grace: nil) }
      }
    case .skipsTheRest:
      let waiting = machine.calls.deliveries.first { !$0.isNested && !$0.waiting.isEmpty }
      if let id = waiting?.id, lies(lie) { machine.calls[id].skipWaiting() }
    case .forgetsTheStop where machine.registry.termination == nil && lies(lie):
      _ = machine.registry.abort()
    default: break
    }
  }

  private mutating func tell(
    _ input: LifecycleMachine.Input, _ starts: [CallID], _ effects: borrowing Effects
  ) {
    story.append("\(now.nanoseconds / 1_000_000) ms: \(input)".prefix(300).description)
    for call in starts.compactMap({ machine.calls.find($0) }) {
      story.append("  starts \(call.step.name) of \(call.observer.value)")
    }
    for case let caller as Caller in effects.cancels {
      story.append("  cancels \(hooks[caller.call]?.step.name ?? "?")")
    }
    for case .fact(let fact) in effects.messages {
      story.append("  \(fact)".prefix(160).description)
    }
  }

  private mutating func checkRemoved(_ removed: [ObserverID], _ input: LifecycleMachine.Input) {
    // The end lets go of all, and after it there is none to remove.
    if machine.stop.exit != nil { return }
    if case .remove(let ids) = input, !ids.allSatisfy(removed.contains) {
      fail("an observer that was removed is kept")
    }
    for id in removed where observers.contains(where: { $0.id == id }) {
      fail("an observer that is there was removed")
    }
  }

  /// Calls that the machine knows no longer, although nobody has ended them: their observer was removed.
  private mutating func noteWithdrawn() {
    for (call, hook) in hooks where !hook.isDropped && !machine.calls.contains(call) {
      if hook.begun != nil { fail("withdrawn after it had begun") }
      hooks[call]?.isDropped = true
      withdrawn += 1
    }
  }

  private mutating func noteTakenBack() {
    for (call, hook) in hooks where !hook.isAwaitedAgain {
      guard machine.calls.find(call)?.wait == .again else { continue }
      hooks[call]?.isAwaitedAgain = true
      change(hook.observer) { $0.history.noteFailure(of: hook.step) }
      takenBack.append(hook.observer.value)
    }
  }

  private mutating func ask(_ round: UInt64) {
    let late = { (random: inout SeededGenerator, now: MonotonicTime) in
      now.advanced(by: .milliseconds(random.below(random.chance(80) ? 50 : 8000)))
    }
    health = (round, late(&random, now))
    if !machine.health.isMainActorAsked { mainActor = late(&random, now) }
    // Sometimes there is no thread to ask them with: then the next tick does.
    if random.chance(90) { give(.healthAsked(round: round)) }
  }

  private mutating func cancel(_ call: CallID) {
    guard let hook = hooks[call] else { return }
    hooks[call]?.isCancelled = true
    if hook.behaviour == .obeys, hook.begun != nil {
      hooks[call]?.endsAt = now.advanced(by: .milliseconds(random.below(300)))
    }
  }

  private mutating func start(_ id: CallID) {
    // Withdrawn again by the same input.
    guard let call = machine.calls.find(id) else { return }
    let observer = call.observer
    machine.calls.give(id, to: Caller(id))
    started += 1
    let step = call.step
    if case .workEnds = step { fail("a hook is called for what only work receives") }
    var isNested = step.isHealthCheck
    if case .posted(let post) = step { isNested = nestedPosts[ObjectIdentifier(post)] != nil }
    if machine.isTerminating, !call.constants.isOfTermination, !isNested,
      step.yieldsToTermination
    {
      fail("\(step.name) begins although a termination has overtaken it")
    }
    // A save that follows an earlier one of its observer's begins when that has ended, which has had its turn.
    let isAgain = saveEnds[observer.value].map { $0 >= savesBegan ?? .distantFuture } ?? false
    let hasTurn = !isNested && !(isAgain && call.constants.isSave)
    checkAlone(call, isNested: !hasTurn)
    if !hasTurn { hadTurn.insert(id) }
    if hasTurn, let phase = observers.first(where: { $0.id == observer })?.phase,
      let problem = steps.begin(call, in: phase)
    {
      fail(problem)
    }
    let kind = random.below(100)
    let behaviour: Behaviour =
      kind < 60 ? .returns : kind < 70 ? .fails : kind < 85 ? .obeys : .ignores
    let lasts: Duration =
      switch behaviour {
      case .returns, .fails: .milliseconds(random.below(3000))
      case .obeys: .seconds(10_000)
      case .ignores: .seconds(random.below(100))
      }
    hooks[id] = Hook(
      order: started, observer: observer, step: step, isNested: isNested,
      behaviour: behaviour,
      beginsAt: now.advanced(by: random.chance(85) ? .zero : .milliseconds(random.below(20_000))),
      lasts: lasts)
  }

  /// One after another, outside of concurrent phases; but in a stop only until half of the time is over.
  private mutating func checkAlone(_ new: Call, isNested: Bool) {
    if isNested { return }
    let phase = { (id: ObserverID, observers: [Observer]) in observers.first { $0.id == id }?.phase
    }
    for (call, hook) in hooks where !hook.isNested && machine.calls.isCurrent(call) {
      let mine = phase(new.observer, observers)
      if mine?.isConcurrent == true && mine == phase(hook.observer, observers) { continue }
      if hadTurn.contains(call) { continue }
      hadTurn.insert(call)
      guard let budget = machine.stop.budget ?? machine.sleep.budget,
        let other = machine.calls.find(call)
      else { return fail("\(new.step.name) begins while another hook runs") }
      let began = max(other.began, budget.began)
      // It may have had its turn by what was known then.
      let isKnown = lastLimit < budget.began && earlierBudget == nil
      let isBefore = { (call: Call) in !call.constants.isOfTermination || call.step.endsWork }
      if machine.isTerminating, isBefore(other), !isBefore(new) {
        if isKnown, now < budget.endBeforeSaves {
          fail("\(new.step.name) before the pauses are over")
        }
        continue
      }
      let kind = isBefore(new) ? nil : new.step.kind
      let last = budget.end(of: kind ?? .didEnterBackground).advanced(byNanoseconds: -budget.moment)
      if isKnown, (began.duration(to: now) + .nanoseconds(1)) * 2 < began.duration(to: last) {
        fail("\(new.step.name) begins while another hook runs that has had no turn")
      }
    }
  }

  /// Whether it has begun and not ended, be its observer there or not. Who posts in a hook waits for that.
  private func runsOn(_ hook: Hook) -> Bool { hook.begun != nil && !hook.isNested }

  private mutating func hear(_ telling: Effects.Message) {
    switch telling {
    case .answered(let post, _):
      let id = ObjectIdentifier(post)
      if lies(.losesAnAnswer) { return }
      if posts.removeValue(forKey: id) == nil { fail("a post was answered twice") }
      if lies(.answersTwice), posts.removeValue(forKey: id) == nil {
        fail("a post was answered twice")
      }
    case .reported(let report, _): for entry in report.entries { note(entry) }
    case .exited(let exit, _):
      if self.exit != nil { fail("ended twice") }
      self.exit = (exit, now)
      if let problem = ObserverHistory.problem(of: exit) { fail(problem) }
      if let problem = missedSave(in: exit) { fail(problem) }
      for hook in hooks.values where exit.exitStatus == 0 && runsOn(hook) {
        fail("status 0 beside \(hook.step.name) of \(hook.observer.value)")
      }
      if lateness == earlierLateness, let budget = machine.stop.budget, !budget.isHurried,
        lastLimit < budget.began,
        let problem = ObserverHistory.missedCall(in: exit, of: earlierBudget ?? budget)
          ?? (earlierBudget != nil
            ? nil : ObserverHistory.skippedInTime(in: exit, at: now, of: budget, takenBack))
      {
        fail(problem)
      }
    case .fact(.readyToSleep):
      if awaitedSleeps == 0 { fail("ready for a sleep that nobody announced") }
      if !lies(.forgetsTheSleep) { awaitedSleeps = 0 }
    case .announced(let step, let cause, _):
      if case .posted(let post) = step { begunPosts.insert(ObjectIdentifier(post)) }
      if step.kind == .shouldSaveState, machine.isTerminating { savesBegan = now }
      expectEntries(of: step)
      if let problem = steps.begin(step, cause, of: machine.registry, isHeld: holds > 0) {
        fail(problem)
      }
    case .fact(.ended(let transition, let report, let elapsed, _)):
      checkEntries(of: report)
      trace.add(transition.row.event, UInt64(report.entries.count))
      if elapsed < .zero { fail("\(transition.row.event) took less than no time") }
    default: break
    }
  }

  /// A stop saves, whatever an earlier save has done, unless that one takes all its time.
  private func missedSave(in exit: LifecycleExit) -> String? {
    guard let began = savesBegan else { return nil }
    let saves = exit.report.entries.filter { $0.notification == ShouldSaveState.self }
    for (observer, entries) in Dictionary(grouping: saves, by: \.registration)
    where observers.contains(where: { $0.id.value == observer }) {
      let isSaving = hooks.values.contains { $0.observer.value == observer && $0.step.isSave }
      let end = isSaving ? now : saveEnds[observer]
      let isCalled = entries.contains {
        switch $0.outcome {
        case .skipped(.busy): end.map { [time = $0.began] in time <= $0 } ?? false
        case .abandoned(.running): true
        default: $0.began >= began
        }
      }
      if !isCalled { return "observer \(observer) was not called to save" }
    }
    return nil
  }

  /// Whom a report must name, whatever has become of their hooks.
  private mutating func expectEntries(of step: LifecycleStep) {
    let kinds: [NotificationKind?] = [.shouldReload, .shouldSaveState, .willTerminate]
    guard kinds.contains(step.kind), let type = step.type else { return }
    expected[ObjectIdentifier(type)] = Set(
      observers.filter { $0.history.isLaunched && !$0.history.hasLaunchFailed }.map(\.id))
  }

  private mutating func checkEntries(of report: LifecycleReport) {
    // Known from the report, since the next step may be announced before its hook has ended.
    for entry in report.entries
    where entry.notification == DidFinishLaunching.self && entry.outcome.severity > 0 {
      if case .skipped = entry.outcome { continue }
      if let id = observers.first(where: { $0.id.value == entry.registration })?.id {
        change(id) { $0.history.hasLaunchFailed = true }
      }
    }
    for (type, ids) in expected {
      let named = Set(
        report.entries.filter { ObjectIdentifier($0.notification) == type }
          .map(\.registration))
      for observer in observers
      where ids.contains(observer.id) && !observer.history.hasLaunchFailed {
        if !named.contains(observer.id.value) { fail("a report leaves an observer out") }
      }
    }
    expected = [:]
  }

  private mutating func note(_ entry: LifecycleReport.Entry) {
    if entry.duration < .zero { fail("a hook took less than no time") }
    guard !works.contains(where: { $0.id.value == entry.registration })
    else { return }
    switch entry.outcome {
    case .completed, .failed, .timedOut, .abandoned, .skipped(.noThread): recorded += 1
    case .skipped: break
    }
    trace.add("\(entry.outcome)", entry.registration)
  }

  // MARK: The end

  private mutating func settle() {
    while holds > 0 { release() }
    isSettling = true
    untilNothingIsDue()
    if violation == nil, immediateExit == nil, exit == nil { checkRest() }
    if exit == nil, immediateExit == nil {
      if askedToEnd == nil { askedToEnd = now }
      give(event: .terminate)
      untilNothingIsDue()
    }
    guard violation == nil, immediateExit == nil else { return }
    checkEnd()
  }

  private mutating func untilNothingIsDue() {
    var rounds = 0
    while violation == nil, immediateExit == nil, nextTime() != nil {
      rounds += 1
      if rounds > 20_000 { return fail("it does not come to rest") }
      passTime()
    }
  }

  /// Everybody is where the daemon is.
  private mutating func checkRest() {
    guard machine.isIdle, hooks.isEmpty, machine.registry.isIdle else {
      return fail("at rest something is under way")
    }
    for observer in observers {
      let problem = observer.history.problemAtRest(
        machine.registry)
      if let problem { fail(problem) }
    }
    if let problem = steps.problemAtRest(machine.registry) { fail(problem) }
    if awaitedSleeps > 0 { fail("logind waits") }
    // Whatever has failed or hung before: nothing that can begin is left out.
    if machine.registry.isServing, !machine.isReady, machine.works.all.allSatisfy(\.isReady) {
      fail("at rest in the foreground, not ready")
    }
    for work in works { checkRest(of: work) }
  }

  /// Work runs where it belongs, unless it has ended by itself.
  private mutating func checkRest(of work: SimulatedWork) {
    if work.isAnswered { return }
    guard let state = machine.works[work.id]?.state else { return fail("a work is forgotten") }
    let belongs =
      machine.registry.state == .foreground || work.options.form != .foreground
    switch state {
    case .running: if !belongs { fail("at rest work runs in a pause") }
    case .returned, .over: break
    case .resting:
      if belongs, !machine.unentered.retried.contains(work.id), work.options.form == .foreground {
        fail("at rest work does not run")
      }
    case .failing, .waiting, .finishing, .cancelled: fail("at rest work is under way")
    }
    if work.isRunning != (machine.works[work.id]?.run != nil) {
      fail("a run is not known")
    }
  }

  private mutating func checkEnd() {
    for work in works {
      if work.isRunning, !work.isAsked { fail("a run goes on after the end") }
      if work.options.hasCaller, !work.isRunning, !work.isAnswered {
        fail("a caller waits for ever")
      }
    }
    guard let (exit, time) = exit else { return fail("it does not end") }
    if let budget = machine.stop.budget {
      let end = max(budget.end, lastLimit)
      if time > end.advanced(by: lateness + .milliseconds(1)) {
        fail("ended \(end.duration(to: time)) after its budget")
      }
    }
    switch lie {
    case .endsWell: checkCode(exit, says: 0)
    default: checkCode(exit, says: exit.exitStatus)
    }
    if let problem = steps.problemAtTheEnd(machine.registry) { fail(problem) }
    if !posts.isEmpty { fail("\(posts.count) posts are not answered") }
    if machine.calls.count != 0 || !machine.calls.unfinished.isEmpty
      || !machine.calls.deliveryIDs.isEmpty
    {
      fail("\(machine.calls.count) calls are left")
    }
    let calls = started + takenBack.count - withdrawn - vanished
    if calls != recorded {
      fail("\(calls) calls, and \(recorded) entries")
    }
    if awaitedSleeps > 0 { fail("logind waits for the end") }
    for observer in observers
    where observer.history.isInForeground && !observer.history.hasLaunchFailed {
      trace.add("left in the foreground", observer.id.value)
    }
  }

  private mutating func checkCode(_ exit: LifecycleExit, says code: Int32) {
    let before = [exit.failedLaunch, exit.overtakenPause].compactMap { $0?.entries }
    let entries = before.joined() + exit.report.entries
    let worst = entries.map(\.severity).max() ?? 0
    let expected: Int32 = exit.error != nil ? 1 : [0, 70, 124][worst]
    if code != expected { fail("status \(code), not \(expected)") }
  }
}

struct SimulatedFailure: Error {}

private struct KeptFailure: Error {
  let kept: UserObject
}

/// Whether the lock is held, and whether a user's object has gone away meanwhile. Of one thread.
private final class Releases: @unchecked Sendable {
  var isLocked = false
  var isWrong = false
}

/// What users give to the core: its deinit is user code.
private final class UserObject: Sendable {
  private let releases: Releases
  init(_ releases: Releases) { self.releases = releases }
  deinit { if releases.isLocked { releases.isWrong = true } }
}

/// What is made wrong, mostly each third time: the simulation must notice.
enum MachineLie: CaseIterable {
  // What passes between machine and world.
  case losesAStart, startsTwice, losesAnEnd, grantsEveryMove, losesAnAnswer, answersTwice
  case losesACancel, losesARemoval, losesTheClock, turnsTheClockBack, forgetsTheSleep, endsWell
  case losesARequest, forgetsAHold, addsToAnotherPhase, releasesUnderTheLock
  // The machine itself: as if one of its rules were missing.
  case takesForReached, forgetsAReached, forgetsAnObserver, launchesAgain
  case forgetsACall, losesADeadline, skipsTheRest, forgetsTheStop, refusesAMove
}

/// What has happened, as a number: the same for the same story.
struct SimulationTrace: Equatable {
  private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
  private(set) var count = 0

  mutating func add(_ text: String, _ number: UInt64) {
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    hash = (hash ^ number) &* 0x100_0000_01b3
    count += 1
  }
}
