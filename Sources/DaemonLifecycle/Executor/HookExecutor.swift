// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

/// The executor of hooks, which also listens for events. It has its own threads, independent of Swift's cooperative
/// pool and of Dispatch.
///
/// One thread listens. The others run items, one after another, or are idle. Of those that run items, those are *free*
/// that are not known to be blocked, and there is one rule: while an item is ready, some thread is free. So an item that
/// becomes ready while none is free is given to a thread that is idle, or to a new one; and the thread that listens runs
/// it itself where no other runs one, and has an idle one listen in its place: one wake-up lies between a signal and its
/// hook.
///
/// The thread that listens looks every 2 ms whether the free ones take items. When they have taken none for `patience`,
/// they are blocked: as many threads again begin. So the number of threads follows the number of hooks that block, not
/// the amount of work, and a hundred hooks that block at once all run after seven looks. The bound, until it is closed,
/// is two, one for each abandoned hook, and `extraThreads`. Items that are not *urgent*, such as a hook's child tasks and what
/// goes on after it was suspended, have a source, which takes at most as many of these as it leaves to the others. If the
/// system has no thread left, an item runs as soon as another thread is free.
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

    /// Of an item that runs after urgent ones.
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
    /// So many threads are blocked in hooks that others wait.
    func threadsReachedLimit(_ count: Int)
  }

  static let patience = Duration.milliseconds(1)
  static let extraThreads = 128
  static let idleSeconds = 1

  let poll = EventPoll()
  /// Of tasks that run on the executor itself.
  private let source = HookQueue.Source()
  let state = Mutex(State())
  /// The hooks that were abandoned after they had begun, and may hold their threads for ever. Relaxed: it is a bound.
  let abandonedHooks = Atomic<Int>(0)
  var abandoned: Int { abandonedHooks.load(ordering: .relaxed) }
  /// The thread that listens (pthread_self(3)); 0 while there is none. Relaxed, since each thread asks whether it is its
  /// own, which it alone writes.
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
      // It looks for items before it waits.
      if isListener { return (false, nil) }
      // Counted in the same step: should this item keep it from the next, the thread that listens is told of that one.
      if !state.isWatched || state.free == 0 { return (true, add(&state)) }
      // A free thread takes it after its own item. Should that block first, the one that listens finds out, unless it
      // sleeps.
      defer { state.listenerSleeps = false }
      return (state.listenerSleeps, nil)
    }
    guard needsWakeUp, !begin(added) else { return }
    poll.wake()
    // Once closed, none but those that run takes the item: as in Dispatch, the caller waits until there is one.
    while state.withLock({ $0.isClosed && !$0.ready.isEmpty && $0.running == 0 }), !addThread() {
      usleep(10_000)
    }
  }

  /// Takes the next item for a task that has ended a call, if it is a hook, too: those of a concurrent phase that do not
  /// wait are called by one task.
  func takeHook() -> (any Call)? {
    state.withLock { state in
      let hook = state.ready.popHook()
      if hook != nil { state.takenAt = .now() }
      return hook
    }
  }

  /// - Parameter serial: Of an exploration, whose jobs may not leave it for an actor.
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

  /// Has another thread take items: one that is idle, or a new one. Returns false when there is none.
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
      || state.hasWork(abandoned: abandoned) && state.threads < abandoned + 2 + Self.extraThreads
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
      throw .system("create the threads that listen and run hooks", errno: EAGAIN)
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

  /// Starts the threads that stay. Returns whether there is one.
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
      // Those that run may be blocked, and none will look.
      return max(state.ready.count, state.idle.count)
    }
    for _ in 0..<count { addThread() }
    poll.wake()
  }
}
