// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

// The life of a thread: it listens, runs items, is idle, and ends.
extension HookExecutor {
  /// A thread of the executor. It listens, is idle, or runs an item.
  final class Worker: Sendable {
    /// The semaphore on which an idle worker waits. Another thread that removes it from `idle` signals it.
    let parking = Semaphore()
    /// The ready descriptors, kept so that listening allocates nothing. Used by the worker's own thread only.
    nonisolated(unsafe) fileprivate let found = EventPoll.Ready()
    /// `State.stalls` when it was given its item. Guarded by the executor's lock.
    nonisolated(unsafe) fileprivate var stalls = 0
    /// The source of its item, if that is not urgent. Guarded by the executor's lock.
    nonisolated(unsafe) fileprivate var source: HookQueue.Source?
  }

  struct State {
    /// Items that wait for a thread.
    var ready = HookQueue()
    /// The workers without an item, the latest last. The first two wait without a time-out.
    var idle: [Worker] = []
    /// The number of threads that exist or are being started.
    var threads = 0
    /// The number of threads that run an item, or are about to take one, and are not known to be blocked.
    private(set) var free = 0
    /// How often the free threads were found to be blocked.
    private(set) var stalls = 0
    /// The worker that listens, or is about to.
    var listener: Worker?
    /// Whether the listener waits without a time-out, and so does not check whether items are taken.
    var listenerSleeps = false
    /// When the last item was taken, or a thread was last woken to take one.
    var takenAt = MonotonicTime(nanoseconds: 0)
    /// When more threads were last asked for, if no item was taken since.
    fileprivate var askedAt: MonotonicTime?
    /// Whether the bound has kept an item waiting, of which the client is warned once.
    fileprivate(set) var hasReachedLimit = false
    var isClosed = false

    /// Whether there is a listener to check whether items are taken.
    var isWatched: Bool { listener != nil && !isClosed }
    /// The number of threads that run items, blocked or not, or are about to.
    var running: Int { threads - idle.count - (listener == nil ? 0 : 1) }

    mutating func newWorker() -> Worker {
      threads += 1
      let worker = Worker()
      markFree(worker)
      return worker
    }

    mutating func markFree(_ worker: Worker) {
      worker.stalls = stalls
      free += 1
      takenAt = .now()
    }

    mutating func markEnded(_ worker: Worker) {
      if worker.stalls == stalls { free -= 1 }
      ready.count(-1, of: worker.source.take())
    }

    /// The most threads for items that are not urgent.
    private func bound(_ abandoned: Int) -> Int {
      isClosed ? .max : abandoned + HookExecutor.extraThreads
    }

    /// Whether a ready item may be taken.
    func hasWork(abandoned: Int) -> Bool {
      ready.hasUrgent || ready.hasOther(of: bound(abandoned))
    }

    /// Takes the next item.
    mutating func take(_ worker: Worker, abandoned: Int) -> WorkItem? {
      guard let item = ready.popInTurn(of: bound(abandoned)) else { return nil }
      markFree(worker)
      let source = item.source
      ready.count(1, of: source)
      worker.source = source
      askedAt = nil
      return item
    }

    mutating func markBlocked() {
      stalls += 1
      free = 0
    }
  }

  enum Turn {
    /// Run an item, after waking the worker that is to listen.
    case run(WorkItem, listener: Worker?)
    /// Listen for at most this many milliseconds; -1 for no limit.
    case listen(Int32)
    /// Have this many other threads take items.
    case addThreads(Int)
    case warnOfLimit(threads: Int)
    /// Wait for a turn; with `mayEnd`, end after a while without one.
    case park(mayEnd: Bool)
    case end
  }

  /// The body of a thread.
  func run(_ me: Worker) {
    while true {
      switch state.withLock({ nextTurn(me, &$0) }) {
      case .run(let item, let successor):
        successor?.parking.signal()
        Self.perform(item)
      case .listen(let milliseconds):
        if !isOnListener {
          listeningThread.store(clinux_this_thread(), ordering: .relaxed)
          client?.listenerChanged()
        }
        poll.wait(milliseconds: milliseconds, me.found)
        releasingElsewhere { client?.descriptorsAreReady(me.found) }
      case .addThreads(let count): for _ in 0..<count where !addThread() { break }
      case .warnOfLimit(let threads): releasingElsewhere { client?.threadsReachedLimit(threads) }
      case .park(let mayEnd): if !park(me, mayEnd: mayEnd) { return }
      case .end: return
      }
    }
  }

  /// A user's deinit must not keep the listening thread.
  @inline(never) private func releasingElsewhere(_ body: () -> Void) {
    ReleasePool.open()
    body()
    if let released = ReleasePool.close() { enqueue(.work { _ = released }) }
  }

  /// Returns the next turn of a thread that has ended its last.
  func nextTurn(_ me: Worker, _ state: inout State) -> Turn {
    var successor: Worker?
    if state.listener !== me {
      state.markEnded(me)
    } else if let turn = watch(&state) {
      return turn
    } else {
      // Before another thread can set it.
      listeningThread.store(0, ordering: .relaxed)
      successor = state.listener
    }
    if let item = state.take(me, abandoned: abandoned) { return .run(item, listener: successor) }
    if state.isClosed {
      state.threads -= 1
      return .end
    }
    state.idle.append(me)
    return .park(mayEnd: endsWhenIdle || state.idle.count > 2)
  }

  /// Returns the listener's next turn; `nil` if it no longer listens: a successor does, or, once closed, none.
  private func watch(_ state: inout State) -> Turn? {
    if state.isClosed {
      state.listener = nil
      return nil
    }
    state.listenerSleeps = state.free == 0 && !state.hasWork(abandoned: abandoned)
    if state.listenerSleeps { return state.ready.isEmpty ? .listen(-1) : limit(&state, -1) }
    if state.running == 0, let successor = state.idle.popLast() {
      state.listener = successor
      return nil
    }
    let now = MonotonicTime.now()
    if state.free > 0 {
      // Free threads may make items ready without waking this one.
      if state.takenAt.duration(to: now) < Self.patience { return .listen(2) }
      state.markBlocked()
      return watch(&state)
    }
    if state.idle.isEmpty, !mayAddThread(state) { return limit(&state, 10) }
    // Threads were requested less than 10 ms ago, and no item was taken since: there was none to be had.
    if let askedAt = state.askedAt, askedAt.duration(to: now) < .milliseconds(10) {
      return .listen(10)
    }
    state.askedAt = now
    return .addThreads(min(state.ready.count, max(1, state.running)))
  }

  /// Items wait that no thread may take: warns once, then listens.
  private func limit(_ state: inout State, _ milliseconds: Int32) -> Turn {
    if state.hasReachedLimit { return .listen(milliseconds) }
    state.hasReachedLimit = true
    return .warnOfLimit(threads: state.running)
  }

  /// Waits for a turn. Returns false when the thread is to end: no turn came for a while.
  private func park(_ me: Worker, mayEnd: Bool) -> Bool {
    guard mayEnd else {
      me.parking.wait()
      return true
    }
    if me.parking.wait(for: .seconds(Self.idleSeconds)) { return true }
    let ends = state.withLock { state in
      guard let index = state.idle.firstIndex(where: { $0 === me }) else { return false }
      state.idle.remove(at: index)
      state.threads -= 1
      return true
    }
    // Otherwise it has just been removed, and the signal is on its way.
    if !ends { me.parking.wait() }
    return !ends
  }
}
