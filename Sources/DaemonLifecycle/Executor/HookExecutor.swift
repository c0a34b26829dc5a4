// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

/// The executor of hooks, which also listens for events. It has its own threads, independent of Swift's cooperative
/// pool and of Dispatch.
///
/// The threads are leader and followers. One thread, the *leader*, listens. The others run work items or are parked.
/// When an event makes a hook ready, the leader promotes a parked thread to leader and runs the hook itself, so that
/// only one wake-up lies between a signal and its hook. Without a parked thread, the leader listens on and starts a
/// thread for the hook. If the system has no thread left, the hook runs as soon as another thread is free.
///
/// `listen` starts three threads, a leader and two followers, which stay until the executor is closed. All other threads
/// end after `parkingSeconds` without work. An idle executor sets no timer: its threads sleep until something happens.
///
/// A thread that runs items takes one after another, unless another thread does. The leader checks on these threads
/// every few milliseconds, as long as there are any: one that is still in the same item after `stallTime` is stalled.
/// For each stalled thread, up to `spawnsPerStall` ready items get a thread of their own per check. So the number of
/// threads follows the number of hooks that block, not the amount of work, up to a bound: two, one for each abandoned
/// hook and each busy serial executor, and `extraThreads` more. Sixty hooks that block at once all run after four
/// checks.
///
/// *Urgent* items, among them the beginning of each hook, get a thread in this way. The others, such as a hook's child
/// tasks, get one while there are no more threads than unfinished hooks and busy serial executors, plus two; beyond
/// that, one every `spareTime`, up to half of `extraThreads`.
final class HookExecutor: TaskExecutor {
  enum WorkItem: Sendable {
    /// A job of a task or an actor, and the executor as which the runtime sees the thread.
    case job(UnownedJob, on: any TaskExecutor, isUrgent: Bool)
    /// A job of a driver's task.
    case step(UnownedJob, of: any Driver, isUrgent: Bool)
    /// Other work that may run user code: a turn of a serial executor, a cancellation handler, a deinit.
    case work(@Sendable () -> Void)

    /// Whether the item runs before others, and never waits because there are too many threads.
    var isUrgent: Bool {
      switch self {
      case .job(_, _, let isUrgent), .step(_, _, let isUrgent): isUrgent
      case .work: true
      }
    }
  }

  /// An executor of one task. `jobReturned` is called on the thread that has run a job of it.
  protocol Driver: TaskExecutor { func jobReturned() }

  /// The client that the leader calls, without a lock. Set once, before there is a thread.
  nonisolated(unsafe) weak var client: (any Client)?
  protocol Client: AnyObject, Sendable {
    func descriptorsAreReady(_ ready: EventPoll.Ready)
    /// The calling thread listens from now on.
    func listenerChanged()
    /// So many threads are blocked in hooks that others wait.
    func threadsReachedLimit()
  }

  struct State {
    /// Items that wait for a thread.
    var ready = HookQueue()
    /// The worker that listens, or that was made leader; `nil` when there is none, or the executor is closed.
    var leader: Worker?
    /// Whether the leader waits without a time-out, so that it does not check for stalls.
    var leaderSleeps = false
    /// The workers that run an item. Those that are not stalled will take the ready items.
    var running: [Worker] = []
    /// The workers that wait for a role, the latest last. The first two wait without a time-out.
    var parked: [Worker] = []
    /// The number of threads that exist or are being started. After `listen`, at least two until the executor is
    /// closed.
    var threads = 0
    var isClosed = false
    var lastStallCheck = MonotonicTime(nanoseconds: 0)
    /// The number of urgent items that may get a thread before the next check although a worker is free, which may
    /// block too.
    var spawnQuota = 0
    /// Whether the last attempt to start a thread failed; cleared when the leader listens again.
    var couldNotSpawn = false
    /// Whether there have been as many threads as there may be.
    var hasReachedLimit = false
    /// The time since which the first ready item has waited because of the bound on threads.
    var waitingSince: MonotonicTime?

    var hasFreeRunner: Bool { running.contains { !$0.isStalled } }

    mutating func markStopped(_ worker: Worker) {
      if let index = running.firstIndex(where: { $0 === worker }) { running.remove(at: index) }
    }
  }

  static let stallTime = Duration.milliseconds(2)
  static let stallCheckMilliseconds: Int32 = 2
  static let spawnsPerStall = 4
  static let spareTime = Duration.milliseconds(10)
  static let extraThreads = 128
  static let parkingSeconds = 1

  let poll = EventPoll()
  let state = Mutex(State())
  /// Whether a leader was started; there is one from then on until the executor is closed.
  private let wasListening = Atomic<Bool>(false)
  /// The number of hooks that have begun, or will, and have not ended: each may hold one thread. Relaxed, as the next
  /// one: a thread that adds to it then enqueues an item under the lock.
  let unfinishedHooks = Atomic<Int>(0)
  /// Those among them that were abandoned after they had begun, and may hold their thread for ever.
  let abandonedHooks = Atomic<Int>(0)
  /// The number of serial executors with work: each may hold one thread.
  let busySerialExecutors = Atomic<Int>(0)
  /// Whether all idle threads end, since only an item can arrive, which starts a thread. For mocks, of which tests make
  /// hundreds without closing them: their leader waits for `bell`, and has no descriptors.
  let endsWhenIdle: Bool
  /// The executor of work in the foreground; `nil` for Swift's pool.
  let pool: (any TaskExecutor)?
  let bell = Semaphore()
  private let startThread: @Sendable (StaticString, @escaping @Sendable () -> Void) -> Bool

  /// - Parameter startThread: Starts a thread, and returns false when there is none; tests replace it.
  init(
    endsWhenIdle: Bool = false, pool: (any TaskExecutor)? = nil,
    startThread: @escaping @Sendable (StaticString, @escaping @Sendable () -> Void) -> Bool = {
      Thread.spawn(named: $0, $1)
    }
  ) {
    self.endsWhenIdle = endsWhenIdle
    self.pool = pool
    self.startThread = startThread
  }

  /// The number of threads that exist now.
  var threadCount: Int { state.withLock { $0.threads } }

  /// Whether nothing is ready and no item runs, so that nothing happens before a new event.
  var isQuiet: Bool { state.withLock { $0.ready.isEmpty && $0.running.isEmpty } }

  /// Whether the calling thread is the leader, which must not run user code.
  var isOnLeader: Bool {
    let thread = clinux_this_thread()
    return state.withLock { $0.leader?.thread == thread }
  }

  // MARK: Enqueueing

  func enqueue(_ job: consuming ExecutorJob) {
    enqueue(.job(UnownedJob(job), on: self, isUrgent: false))
  }

  func enqueue(_ item: WorkItem) {
    let thread = clinux_this_thread()
    let woken = state.withLock { state -> WakeUp? in
      state.ready.append(item)
      // The leader checks for ready items before it waits.
      if state.leader?.thread == thread { return nil }
      return wakeUp(&state)
    }
    switch woken {
    case nil: break
    case .leader: wakeLeader()
    case .parked(let worker): worker.parking.signal()
    case .new(let worker):
      // Once closed, no other thread takes the item: as in Dispatch, the caller waits until there is a thread.
      while !start(worker), state.withLock({ $0.isClosed && !$0.ready.isEmpty }) {
        state.withLock { $0.threads += 1 }
        usleep(10_000)
      }
    }
  }

  /// The worker that handles a new item.
  private enum WakeUp {
    case leader
    /// A parked worker, whose role is set.
    case parked(Worker)
    /// A worker without a thread.
    case new(Worker)
  }

  private func wakeUp(_ state: inout State) -> WakeUp? {
    if state.isClosed {
      // No leader checks for stalls: each late item gets a thread, which ends after it.
      return .new(addThread(&state))
    }
    if state.hasFreeRunner {
      // It takes the item after its own. Should it block first, the leader notices: it checks for stalls as long as
      // there is a free runner and it does not sleep.
      guard state.leaderSleeps else { return nil }
      state.leaderSleeps = false
      return .leader
    }
    if let worker = state.parked.popLast() {
      worker.role = .run(state.ready.popFirst()!)
      Self.markRunning(worker, &state)
      return .parked(worker)
    }
    if state.leader != nil { return .leader }
    return .new(addLeader(&state))
  }

  // MARK: Listening

  /// Whether there is a leader, or was one.
  var isListening: Bool { wasListening.load(ordering: .acquiring) }

  /// Makes sure that one thread listens and others are there to run hooks.
  func listen() throws(LifecycleError) {
    try poll.open()
    guard listenIfMissing(), followIfMissing() else {
      throw .system("create the threads that listen and run hooks", errno: EAGAIN)
    }
  }

  /// Listens, for a caller that can't report an error: a sleep on the clock of a subject that was not started. Returns
  /// whether a thread was available.
  @discardableResult func listenIfMissing() -> Bool {
    if !endsWhenIdle, isListening { return true }
    let (leader, isThere) = state.withLock { state -> (Worker?, Bool) in
      // An item may have started it, or be about to, and have no thread.
      if let leader = state.leader { return (nil, leader.thread != 0) }
      return (state.isClosed ? nil : addLeader(&state), false)
    }
    if let leader {
      // Without descriptors it listens all the same, and tries again.
      if !endsWhenIdle { try? poll.open() }
      guard start(leader) else { return false }
    } else if !isThere {
      return true
    }
    wasListening.store(true, ordering: .releasing)
    return true
  }

  /// Two: a hook that blocks for ever leaves one for the saves, also where no thread can be had any more. Returns whether
  /// there is one.
  private func followIfMissing() -> Bool {
    for count in 2...3 {
      let follower = state.withLock { state in
        state.threads < count && !state.isClosed ? addThread(&state) : nil
      }
      if let follower, !start(follower) { return count > 2 }
    }
    return true
  }

  /// Ends the threads as they become idle. Jobs that are enqueued later still run.
  func close() {
    let parked = state.withLock { state in
      state.isClosed = true
      state.threads -= state.parked.count
      defer { state.parked = [] }
      for worker in state.parked { worker.role = .end }
      return state.parked
    }
    for worker in parked { worker.parking.signal() }
    wakeLeader()
  }

  private func wakeLeader() { if endsWhenIdle { bell.signal() } else { poll.wake() } }

  // MARK: Starting threads

  /// Makes a worker for `start`, counted before its thread exists, so that not too many are started.
  func addThread(_ state: inout State) -> Worker {
    state.threads += 1
    return Worker()
  }

  private func addLeader(_ state: inout State) -> Worker {
    let leader = addThread(&state)
    leader.role = .lead
    state.leader = leader
    return leader
  }

  /// Starts the thread of a worker. Returns false when no thread is available: the worker is then removed from the
  /// count, in one step with `undo`.
  @discardableResult
  func start(_ worker: Worker, undo: (inout State) -> Void = { _ in }) -> Bool {
    if startThread("lifecycle", { self.work(worker) }) { return true }
    state.withLock { state in
      state.threads -= 1
      if state.leader === worker { state.leader = nil }
      undo(&state)
    }
    return false
  }
}
