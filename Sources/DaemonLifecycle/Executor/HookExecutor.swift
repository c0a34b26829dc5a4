// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

/// The executor of hooks, which also listens for events. It has its own threads, independent of Swift's cooperative
/// pool and of Dispatch.
///
/// One thread listens. The others run items, one after another, or are idle. A thread that runs an item is *free*
/// unless it is known to be blocked. There is one rule: while an item is ready, some thread is free. So an item that
/// becomes ready while no thread is free is given to an idle thread, or to a new one. If no other thread runs an item,
/// the listener runs it itself and has an idle thread listen in its place: one wake-up lies between a signal and its
/// hook.
///
/// The listener checks every 2 ms whether the free threads take items. If they have taken none for `patience`, they
/// count as blocked, and as many threads again begin. So the number of threads follows the number of hooks that block,
/// not the amount of work, and a hundred hooks that block at once all run after seven checks. Until it is closed, the
/// bound is two, one for each abandoned hook and, up to `mostTurns`, each turn of a serial executor, and `extraThreads`. Items that are not *urgent*, such as a hook's child
/// tasks and its continuation after a suspension, have a source, which uses at most as many threads as it leaves to
/// other sources. If the system has no thread left, an item runs as soon as another thread is free.
///
/// Where no thread listens, each item is given to a thread at once; if there is none, with the next item.
///
/// `listen` starts three threads, which stay until the executor is closed: a hook that blocks for ever leaves one to
/// listen and one for the saves. All others end after `idleSeconds` without an item. An idle executor sets no timer: its
/// threads sleep until something happens.
final class HookExecutor: TaskExecutor {
  enum WorkItem: Sendable {
    case hook(any Call)
    /// A job of a task or an actor, and the executor as which the runtime sees the thread; urgent without a source.
    case job(UnownedJob, on: any TaskExecutor, of: HookQueue.Source?)
    /// Other work that may run user code: a turn of a serial executor, a cancellation handler, a deinit.
    case work(@Sendable () -> Void)

    /// The source; `nil` for an urgent item.
    var source: HookQueue.Source? { if case .job(_, _, let source) = self { source } else { nil } }
  }

  /// A call of a hook that waits for a thread.
  protocol Call: AnyObject, Sendable {
    /// Begins, on the calling thread.
    func begin()
  }

  /// The client of the thread that listens, which calls it without a lock. Set once, before there is a thread.
  nonisolated(unsafe) weak var client: (any Client)?
  protocol Client: AnyObject, Sendable {
    func descriptorsAreReady(_ ready: EventPoll.Ready)
    /// The calling thread listens from now on.
    func listenerChanged()
    /// That many threads are blocked in hooks, and other items wait.
    func threadsReachedLimit(_ count: Int)
  }

  static let patience = Duration.milliseconds(1)
  static let extraThreads = 128
  static let mostTurns = 512
  static let idleSeconds = 1

  let poll = EventPoll()
  /// The source of tasks that run on the executor itself.
  private let source = HookQueue.Source()
  let state = Mutex(State())
  /// The hooks that were abandoned after they had begun, and may hold their threads for ever. Relaxed: it is a bound.
  let abandonedHooks = Atomic<Int>(0)
  var abandoned: Int { abandonedHooks.load(ordering: .relaxed) }
  /// The turns of serial executors that are under way, and may block for as long. Relaxed: it is a bound.
  let serialTurns = Atomic<Int>(0)
  private var turns: Int { min(serialTurns.load(ordering: .relaxed), Self.mostTurns) }
  /// The thread that listens (pthread_self(3)); 0 while there is none. Relaxed: a thread compares it with its own id,
  /// which it alone writes, or takes it as a hint.
  let listeningThread = Atomic<UInt>(0)
  /// Whether all idle threads end, and none listens: for mocks, of which tests make hundreds without closing them.
  let endsWhenIdle: Bool
  /// The executor of work in the foreground; `nil` for Swift's pool.
  let pool: (any TaskExecutor)?
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
  var isQuiet: Bool { state.withLock { $0.ready.isEmpty && $0.running == 0 } }

  /// Whether the calling thread is the one that listens, which must not run user code.
  var isOnListener: Bool { listeningThread.load(ordering: .relaxed) == clinux_this_thread() }

  // MARK: Items

  func enqueue(_ job: consuming ExecutorJob) {
    enqueue(.job(UnownedJob(job), on: self, of: source))
  }

  func enqueue(_ item: WorkItem) {
    let isListener = isOnListener
    let (needsWakeUp, added) = state.withLock { state -> (Bool, Added?) in
      state.ready.append(item)
      // The listener looks for items before it waits.
      if isListener { return (false, nil) }
      // Counted under the same lock, so that the next item wakes the listener if this one keeps the thread busy.
      if !state.isWatched || state.free == 0 { return (true, add(&state)) }
      // A free thread takes it after its own item. If that blocks, the listener notices; if it sleeps, it is woken now.
      defer { state.listenerSleeps = false }
      return (state.listenerSleeps, nil)
    }
    guard needsWakeUp, !begin(added) else { return }
    poll.wake()
    // Once closed, nothing listens, and only running threads take the item: as in Dispatch, the caller waits for one.
    while state.withLock({ $0.isClosed && !$0.ready.isEmpty && $0.running == 0 }), !addThread() {
      usleep(10_000)
    }
  }

  /// Takes the next item if it is a hook, for a task that has ended a call: one task calls all hooks of a concurrent
  /// phase that do not wait.
  func takeHook() -> (any Call)? {
    state.withLock { state in
      let hook = state.ready.popHook()
      if hook != nil { state.takenAt = .now() }
      return hook
    }
  }

  /// - Parameter serial: The executor of an exploration, which its jobs may not leave for an actor.
  static func perform(_ item: WorkItem, isolatedTo serial: UnownedSerialExecutor? = nil) {
    switch item {
    case .hook(let call): call.begin()
    case .job(let job, let executor, _):
      // The runtime keeps an unowned reference while the job runs.
      withExtendedLifetime(executor) {
        let executor = executor.asUnownedTaskExecutor()
        if let serial {
          job.runSynchronously(isolatedTo: serial, taskExecutor: executor)
        } else {
          job.runSynchronously(on: executor)
        }
      }
    case .work(let work): work()
    }
  }

  // MARK: Threads

  /// A thread that is to take items, and is counted as free.
  private enum Added {
    case idle(Worker)
    case new(Worker)
  }

  /// Has another thread take items: an idle one, or a new one. Returns false when there is none.
  @discardableResult func addThread() -> Bool { begin(state.withLock { add(&$0) }) }

  private func add(_ state: inout State) -> Added? {
    if let idle = state.idle.popLast() {
      state.markFree(idle)
      return .idle(idle)
    }
    return mayAddThread(state) ? .new(state.newWorker()) : nil
  }

  private func begin(_ added: Added?) -> Bool {
    switch added {
    case .idle(let worker):
      worker.parking.signal()
      return true
    case .new(let worker): return start(worker)
    case nil: return false
    }
  }

  /// Whether the bound allows a thread more.
  func mayAddThread(_ state: borrowing State) -> Bool {
    state.isClosed
      || state.hasWork(abandoned: abandoned)
        && state.threads < abandoned + turns + 2 + Self.extraThreads
  }

  /// Starts the thread of a worker that is counted. Returns false when the system has none.
  private func start(_ worker: Worker) -> Bool {
    if startThread("lifecycle", { self.run(worker) }) { return true }
    let unwatched = state.withLock { state in
      state.threads -= 1
      guard state.listener === worker else {
        state.markEnded(worker)
        return 0
      }
      state.listener = nil
      return state.ready.count
    }
    for _ in 0..<unwatched { addThread() }
    return false
  }

  // MARK: Listening

  /// Whether a thread listens.
  var isListening: Bool { state.withLock { $0.listener != nil } }

  /// Makes sure that one thread listens and others are there to run hooks.
  func listen() throws(LifecycleError) {
    try poll.open()
    guard listenIfMissing(), startThreads() else {
      throw .system(purpose: "create the threads that listen and run hooks", errno: EAGAIN)
    }
  }

  /// Listens, for a caller that can't report an error: a sleep on the clock of a subject that was not started. Returns
  /// whether a thread was available.
  @discardableResult func listenIfMissing() -> Bool {
    if endsWhenIdle || listeningThread.load(ordering: .relaxed) != 0 { return true }
    let listener = state.withLock { state -> Worker? in
      if state.listener != nil || state.isClosed { return nil }
      state.threads += 1
      state.listener = Worker()
      return state.listener
    }
    guard let listener else { return true }
    // Without descriptors it listens all the same, and tries again.
    try? poll.open()
    return start(listener)
  }

  /// Starts the threads that stay. Returns whether there is at least one.
  private func startThreads() -> Bool {
    for count in 2...3 {
      let new = state.withLock { $0.threads < count && !$0.isClosed ? $0.newWorker() : nil }
      if let new, !start(new) { return count > 2 }
    }
    return true
  }

  /// Ends the threads as they become idle. Jobs that are enqueued later still run.
  func close() {
    let count = state.withLock { state in
      state.isClosed = true
      // Running threads may be blocked, and nothing checks them any more.
      return max(state.ready.count, state.idle.count)
    }
    for _ in 0..<count { addThread() }
    poll.wake()
  }
}
