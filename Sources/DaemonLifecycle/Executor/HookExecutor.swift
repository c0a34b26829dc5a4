import CLinux
import DaemonSystemd
import Synchronization

/// Runs hooks and listens for events on threads of its own, so that neither depends on Swift's
/// cooperative pool or on Dispatch.
///
/// The threads are leader and followers. The *leader* listens; all others run items or are parked. When
/// an event makes a hook ready, the leader runs the hook itself: one wake-up
/// lies between a signal and its hook. So that somebody listens all the same, a *deputy* stands by, whom an alarm
/// wakes when the leader has been in one item for `patience`: the deputy leads then, and the former leader is a
/// runner. Most hooks are over before that, and cost no change of threads. Without a deputy the leader hands
/// the lead to another thread, or a new one, before it runs the item.
///
/// `listen` makes both of them, and neither ends before the executor is closed: where the system has no thread left to
/// give, hooks run all the same as long as they end. The leader listens on while one does not.
///
/// A *runner* takes item after item. One that stays in the same item for `stallTime` is stalled, and for each such
/// runner `growth` ready items get threads of their own; so threads grow by the blocked hooks, not by the work,
/// and a hundred that block at once are on their way after four looks. They grow to one a hook and one a serial
/// executor, beside two. Only a hook whose own child tasks block as well takes more, one every `spareTime`, up to
/// `spareThreads`. A thread that finds nothing to do for `parkingSeconds` ends, unless it is the last follower.
final class HookExecutor: TaskExecutor {
  enum Item: Sendable {
    /// A driver's first job, which begins a hook.
    case hook(UnownedJob)
    case job(UnownedJob)
    case lane(LifecycleSerialExecutor)
    /// The caller of `run`, on its way out: see `CallerExecutor`.
    case caller(UnownedJob)
    /// What may run user code beside a hook, and so not on the leader: cancellation handlers, a deinit.
    case work(@Sendable () -> Void)

    /// Whether it must wait when there are as many threads as there may be; the others go first.
    var isBounded: Bool {
      switch self {
      case .job: true
      case .hook, .lane, .caller, .work: false
      }
    }
  }

  /// What the leader calls, under no lock. Set once, before there is a thread.
  nonisolated(unsafe) weak var client: (any Client)?
  protocol Client: AnyObject, Sendable {
    func descriptorsAreReady(_ descriptors: [PolledDescriptor])
    func timerExpired()
    /// The calling thread listens from now on.
    func listenerChanged()
    /// Descriptors of this process were closed under us. Ours are there again, if `failure` is `nil`; the client's may be
    /// gone. Not `isRepaired`: none of ours was missing.
    func descriptorsWereLost(isRepaired: Bool, failure: LifecycleError?)
  }

  /// A thread of this executor.
  final class Worker: Sendable {
    let parking = Semaphore()
    /// Grows as the worker begins and ends an item: the same number later means the same item still runs.
    let sequence = Atomic<UInt64>(0)
    /// Written by its own thread and by nobody else.
    nonisolated(unsafe) var isLeading = false
    /// Guarded by the executor's lock: what it is told to do. `nil`: to go on waiting.
    nonisolated(unsafe) var role: Role?
    /// Guarded by the executor's lock: it waits for the alarm and not for its semaphore.
    nonisolated(unsafe) var isDeputy = false
    /// Guarded by the executor's lock: the sequence at the last look, and whether it was the same since.
    nonisolated(unsafe) var seen: UInt64 = 0
    nonisolated(unsafe) var isStalled = false
    /// Guarded by the executor's lock: the thread's number, once it runs.
    nonisolated(unsafe) var thread: Int32 = 0
    let executor: HookExecutor

    init(_ executor: HookExecutor) { self.executor = executor }

    /// The worker whose thread this is.
    static var current: Worker? {
      // The tag is set by `HookExecutor.work` for as long as its frame, which retains the worker, lives.
      clinux_thread_tag().map { Unmanaged<Worker>.fromOpaque($0).takeUnretainedValue() }
    }
  }

  /// A thread in one of its items: equal as long as it has not gone on to another.
  struct Spot: Equatable, Sendable {
    /// The worker's address.
    let thread: UInt
    let sequence: UInt64

    static var current: Spot? {
      guard let tag = clinux_thread_tag() else { return nil }
      // As `Worker.current`, without holding on to it.
      let sequence = Unmanaged<Worker>.fromOpaque(tag)._withUnsafeGuaranteedRef {
        $0.sequence.load(ordering: .relaxed)
      }
      return Spot(thread: UInt(bitPattern: tag), sequence: sequence)
    }
  }

  enum Role {
    case lead
    case run(Item)
    case park, standBy, end
  }

  struct State {
    var ready = HookQueue()
    /// A thread leads, or has been told to: never two.
    var hasLeader = false
    /// The leader waits without a time-out, so nobody looks for stalls.
    var leaderSleeps = false
    /// Workers that run an item. Those that are not stalled will take the ready items.
    var running: [Worker] = []
    /// Workers that wait for a role, the latest last.
    var parked: [Worker] = []
    /// The one that waits for the alarm.
    var deputy: Worker?
    /// The leader that runs items itself, and the item in which it was last seen: while it does, the alarm is set.
    var busyLeader: (worker: Worker, seen: UInt64)?
    /// How many items the leader has run itself since it last listened.
    var itemsInARow = 0
    /// A deputy was given a role and has not heard the alarm yet, which no other may hear meanwhile.
    var wakingDeputy: Worker?
    /// Once there was a leader with a follower, two at least until the executor is closed.
    var threads = 0
    var isClosed = false
    /// The leader's descriptors are gone, and there were no others to be had so far.
    var lacksDescriptors = false
    var lastLook = MonotonicTime(nanoseconds: 0)
    /// How many ready items may have a thread before the next look, though a runner is free: it may block too.
    var allowance = 0
    var couldNotSpawn = false
    /// Since when an item waits at the bound.
    var waitingSince: MonotonicTime?

    var hasFreeRunner: Bool { running.contains { !$0.isStalled } }
  }

  static let stallTime = Duration.milliseconds(2)
  static let growth = 4
  static let spareTime = Duration.milliseconds(10)
  static let lookMilliseconds: Int32 = 2
  /// A leader that runs one short item after another listens after so many: the deputy sees to long ones only.
  static let mostItemsInARow = 32
  static let parkingSeconds = 1
  static let spareThreads = 64

  let poll = EventPoll()
  let alarm = DeputyAlarm()
  let state = Mutex(State())
  /// A leader was begun; there is one from then on, until the executor is closed.
  private let wasListening = Atomic<Bool>(false)
  /// Hooks that have begun, or will, and have not ended: each may hold one thread.
  let unfinishedHooks = Atomic<Int>(0)
  /// Serial executors with work: each may hold one thread.
  let busyLanes = Atomic<Int>(0)
  /// Until when the leader looks whether more descriptors are lost; nanoseconds, 0: there was no loss.
  let watchfulUntil = Atomic<Int64>(0)
  /// How long the leader may be in one item before the deputy leads.
  let patience: Duration
  private let spawn: @Sendable (StaticString, @escaping @Sendable () -> Void) -> Bool

  /// `spawn` is the seam for tests that take the threads away, and `patience` for those that want no deputy to come.
  init(
    patience: Duration = .microseconds(100),
    spawn: @escaping @Sendable (StaticString, @escaping @Sendable () -> Void) -> Bool = {
      Thread.spawn(named: $0, $1)
    }
  ) {
    self.patience = patience
    self.spawn = spawn
  }

  /// Threads that exist now.
  var threadCount: Int { state.withLock { $0.threads } }

  /// A thread stands by: the leader runs the next item itself.
  var hasDeputy: Bool { state.withLock { $0.deputy != nil } }

  /// Nothing is ready and no item runs, so that nothing more happens unless something comes from outside.
  var isQuiet: Bool { state.withLock { $0.ready.isEmpty && $0.running.isEmpty } }

  // MARK: Enqueueing

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    enqueue(clinux_take_enqueue_hint() ? .hook(job) : .job(job))
  }

  /// The next job that this thread enqueues begins a hook: for the creation of a driver's task, which
  /// enqueues the task before it returns.
  static func expectHook() { clinux_set_enqueue_hint() }

  func enqueue(_ item: Item) {
    let current = Worker.current
    let action: Action = state.withLock { state in
      state.ready.append(item)
      if let current, current.executor === self, current.isLeading { return .none }
      if state.isClosed { return Self.enqueueClosed(&state) }
      // A runner takes it as soon as it is through. Should it block first, the leader sees that: it looks
      // at the runners every `stallTime` as long as one is not stalled and something may be waiting.
      if state.hasFreeRunner {
        guard state.leaderSleeps else { return .none }
        state.leaderSleeps = false
        return .wakeLeader
      }
      if let worker = takeFollower(&state) {
        let item = state.ready.popFirst()!
        Self.run(worker, &state)
        give(worker, .run(item), &state)
        return .none
      }
      if state.hasLeader { return .wakeLeader }
      state.threads += 1
      state.hasLeader = true
      return .spawn(.lead)
    }
    switch action {
    case .none: break
    case .wakeLeader: poll.wake()
    case .spawn(let role):
      guard !spawnWorker(role) else { return }
      giveUpSpawning { if case .lead = role { $0.hasLeader = false } }
    }
  }

  private enum Action {
    case none
    case wakeLeader
    case spawn(Role)
  }

  /// Nobody leads any more and looks for stalls: what comes late gets a thread for itself, which ends after.
  private static func enqueueClosed(_ state: inout State) -> Action {
    state.threads += 1
    return .spawn(.park)
  }

  /// Sees to it that a thread listens and another stands by. Throws when there is none to be had.
  func listen() throws(LifecycleError) {
    if let failure = poll.failure { throw failure }
    if !listenIfMissing() { throw .system("create the event thread", errno: EAGAIN) }
    if !followIfMissing() {
      throw .system("create the thread that stands by for the event thread", errno: EAGAIN)
    }
  }

  /// False when there is no thread to be had.
  private func followIfMissing() -> Bool {
    let isMissing = state.withLock { state in
      guard state.threads < 2, !state.isClosed else { return false }
      state.threads += 1
      return true
    }
    guard isMissing, !spawnWorker(.park) else { return true }
    giveUpSpawning { _ in }
    return false
  }

  /// As `listen()`, for those who have nobody to tell: a sleep on the clock of a subject that was not
  /// started. False when there is no thread to be had.
  @discardableResult func listenIfMissing() -> Bool {
    if wasListening.load(ordering: .acquiring) { return true }
    let isMissing = state.withLock { state in
      guard !state.hasLeader, !state.isClosed else { return false }
      state.hasLeader = true
      state.threads += 1
      return true
    }
    guard isMissing else { return true }
    guard spawnWorker(.lead) else {
      giveUpSpawning { $0.hasLeader = false }
      return false
    }
    wasListening.store(true, ordering: .releasing)
    return true
  }

  /// Ends the threads as they become idle. Jobs that are enqueued later still run.
  func close() {
    state.withLock { state in
      state.isClosed = true
      // What is ready must not wait for the item that the leader is in.
      if state.busyLeader != nil, let deputy = takeDeputy(&state) {
        state.busyLeader = nil
        give(deputy, .lead, &state)
      }
      while let worker = takeFollower(&state) {
        state.threads -= 1
        give(worker, .end, &state)
      }
    }
    poll.wake()
  }

  // MARK: Threads

  /// The thread was counted before; when there is none, the caller gives up what it was counted for.
  func spawnWorker(_ role: Role) -> Bool {
    let worker = Worker(self)
    worker.isLeading = if case .lead = role { true } else { false }
    return spawn("lifecycle") { self.work(worker, role) }
  }

  /// In one step, so that nobody sees a thread too many or takes a lead that is being taken back.
  func giveUpSpawning(_ undo: (inout State) -> Void) {
    state.withLock { state in
      state.threads -= 1
      undo(&state)
    }
  }

  /// A thread that waits, which is to be given a role at once.
  func takeFollower(_ state: inout State) -> Worker? {
    state.parked.popLast() ?? takeDeputy(&state)
  }

  /// The deputy, which hears the alarm as soon as the lock is free.
  private func takeDeputy(_ state: inout State) -> Worker? {
    guard let deputy = state.deputy else { return nil }
    guard alarm.ring() else {
      unseatDeputy(&state)
      return nil
    }
    state.deputy = nil
    state.wakingDeputy = deputy
    return deputy
  }

  /// Under the lock: the alarm is also set and cleared there.
  func give(_ worker: Worker, _ role: Role, _ state: inout State) {
    worker.role = role
    if !worker.isDeputy { worker.parking.signal() }
  }

  private func work(_ me: Worker, _ first: Role) {
    clinux_set_thread_tag(Unmanaged.passUnretained(me).toOpaque())
    defer { clinux_set_thread_tag(nil) }
    let thread = clinux_thread_id()
    state.withLock { _ in me.thread = thread }
    var role = first
    if case .park = role { role = nextRole(me) }
    while true {
      switch role {
      case .lead: role = lead(me)
      case .run(let item):
        run(item, me)
        role = nextRole(me)
      case .park: role = park(me)
      case .standBy: role = standBy(me)
      case .end: return
      }
    }
  }

  func run(_ item: Item, _ me: Worker) {
    me.sequence.add(1, ordering: .releasing)
    switch item {
    case .hook(let job), .job(let job): job.runSynchronously(on: asUnownedTaskExecutor())
    case .lane(let lane): lane.runNext()
    case .caller(let job):
      job.runSynchronously(on: globalConcurrentExecutor.asUnownedTaskExecutor())
    case .work(let work): work()
    }
    me.sequence.add(1, ordering: .releasing)
  }

  static func run(_ worker: Worker, _ state: inout State) {
    worker.isStalled = false
    worker.seen = 0
    state.running.append(worker)
  }

  /// What a worker does after an item: in one step with taking it off the runners, so that whoever
  /// enqueues sees either a runner or a parked worker.
  func nextRole(_ me: Worker) -> Role {
    state.withLock { state in
      state.running.removeAll { $0 === me }
      if let item = state.ready.popFirst() {
        Self.run(me, &state)
        return .run(item)
      }
      if state.isClosed {
        state.threads -= 1
        return .end
      }
      if !state.hasLeader {
        state.hasLeader = true
        me.isLeading = true
        return .lead
      }
      me.role = nil
      me.isDeputy = state.deputy == nil && state.wakingDeputy == nil && alarm.isUsable
      if me.isDeputy {
        state.deputy = me
        return .standBy
      }
      state.parked.append(me)
      return .park
    }
  }

  private func park(_ me: Worker) -> Role {
    while state.withLock({ mayLeave(me, $0) }) || alarm.isUsable {
      if me.parking.wait(seconds: Self.parkingSeconds) { return takeRole(me) }
      let isOver = state.withLock { state in
        guard mayLeave(me, state) else { return false }
        state.parked.removeAll { $0 === me }
        state.threads -= 1
        return true
      }
      if isOver { return .end }
    }
    // The last follower, where there is no alarm for a deputy: for as long as it takes.
    me.parking.wait()
    return takeRole(me)
  }

  /// Somebody else follows, and this one has not just been given a role.
  private func mayLeave(_ me: Worker, _ state: borrowing State) -> Bool {
    me.role == nil && (state.deputy != nil || state.parked.count > 1)
  }

  /// The role is given before the signal.
  private func takeRole(_ me: Worker) -> Role {
    let role = state.withLock { _ in me.role.take() } ?? .end
    if case .lead = role { me.isLeading = true }
    return role
  }
}
