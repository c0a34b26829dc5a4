// SPDX-License-Identifier: Apache-2.0
internal import CExploration
import DaemonLifecycle
import DaemonLifecycleTesting
import Synchronization

/// The jobs of one run of a daemon: hooks, tasks, actors, and code that is isolated to the main actor. Each waits here
/// until the explorer performs it, on the explorer's thread.
final class RunJobs: Sendable {
  /// Performs a job on this thread, isolated to an executor unless it has one of its own.
  private typealias Job = @Sendable (UnownedSerialExecutor) -> Void

  private struct State {
    /// In the order in which they became ready.
    var ready: [Job] = []
    /// Whether another thread has resumed a job.
    var hasEscaped = false
    /// The tasks that `owners` maps to this run.
    var tasks: Set<UInt64> = []
    /// Whether new tasks are dropped: one that sleeps on the real clock would wake when the run is over, and be taken
    /// for an escape.
    var isEnding = false
    /// Whether jobs that become ready are dropped, since the run has ended.
    var isOver = false
  }
  private let state = Mutex(State())

  /// The executor of work in the foreground.
  static var pool: any TaskExecutor { StandIn.pool }

  /// The number of jobs that are ready, with those of the run's core.
  func count(of core: LifecycleCore? = nil) -> Int {
    while let hook = core?.takeReady() { state.withLock { $0.ready.append(hook) } }
    return state.withLock(\.ready.count)
  }

  var hasEscaped: Bool { state.withLock(\.hasEscaped) }

  /// Performs one of the jobs that are ready.
  func perform(_ index: Int = 0) {
    let job = state.withLock { $0.ready.remove(at: index) }
    // A job can't leave this executor without becoming ready again elsewhere: each step is a choice.
    job(StandIn.pool.asUnownedSerialExecutor())
  }

  /// From now on new tasks are dropped.
  func beginEnding() { state.withLock { $0.isEnding = true } }

  /// Drops the jobs that are ready, and all later ones.
  func end() {
    // Released without the lock: a job's last reference may resume a task.
    var dropped: [Job] = []
    state.withLock { state in
      state.isOver = true
      swap(&state.ready, &dropped)
    }
  }

  // MARK: The runtime

  /// Performs `body` as this run: the jobs that this thread enqueues are the run's.
  func current<T>(_ body: () throws -> T) rethrows -> T {
    cexploration_enter(Unmanaged.passUnretained(self).toOpaque())
    defer { cexploration_enter(nil) }
    return try body()
  }

  /// The run of each task that was seen, by the task's number, which is never used again.
  private static let owners = Mutex<[UInt64: RunJobs]>([:])

  /// Performs `body` with the runtime's hooks set, so that tasks of its runs are known on other threads, too.
  static func capturing<T>(_ body: () throws -> T) throws -> T {
    // An executor reference is an object and its witness table; the runtime's hook returns both.
    let main = unsafeBitCast(
      StandIn.main.asUnownedSerialExecutor(),
      to: (UnsafeMutableRawPointer, UnsafeRawPointer).self)
    let isInstalled = owners.withLock { _ in cexploration_begin(take, main.0, main.1) }
    defer {
      owners.withLock { owners in
        // Other explorations may still watch for the escape of a run that has ended.
        if cexploration_end() == 0 {
          owners = owners.filter { !$0.value.state.withLock(\.isOver) }
        }
      }
    }
    guard isInstalled, handsJobsOver() else { throw notHandedOver }
    return try body()
  }

  /// Throws an error if jobs of the run were not performed by it.
  func checkCapture() throws {
    guard cexploration_is_installed() else { throw Self.notHandedOver }
    guard hasEscaped else { return }
    throw ExplorationError(
      "The run can't be replayed: a job was resumed by another thread. Sleep on lifecycle.clock, and replace what waits"
        + " for Dispatch, a thread or an executor of its own by a fake.")
  }

  private static let notHandedOver = ExplorationError(
    "Swift's runtime does not hand its jobs over, so nothing can be explored: its version does not let itself be"
      + " explored, or another tool, such as withMainSerialExecutor, has set its hooks. Run such tests one after the other."
  )

  private static let take: cexploration_take = { run, job, task, isForMain in
    // A thread that is in a run retains it.
    let its = run.map { Unmanaged<RunJobs>.fromOpaque($0).takeUnretainedValue() }
    if let its, task != 0,
      let isEnding = its.state.withLock({ $0.tasks.insert(task).inserted ? $0.isEnding : nil })
    {
      if isEnding { return true }
      owners.withLock { $0[task] = its }
    }
    guard let jobs = its ?? owners.withLock({ $0[task] }) else { return false }
    // A reference to a job is a pointer to it. It stays valid until it is performed, which is once.
    let job = unsafeBitCast(job, to: UnownedJob.self)
    let perform: Job = { here in
      if isForMain {
        job.runSynchronously(on: StandIn.main.asUnownedSerialExecutor())
      } else {
        job.runSynchronously(
          isolatedTo: here, taskExecutor: StandIn.pool.asUnownedTaskExecutor())
      }
    }
    jobs.state.withLock { state in
      if run == nil { state.hasEscaped = true }
      if !state.isOver { state.ready.append(perform) }
    }
    return true
  }

  /// Whether the runtime hands over all jobs: those of a task, of a task that yields, of an actor, of the main actor.
  private static func handsJobsOver() -> Bool {
    actor Steps {
      let count = Atomic<Int>(0)
      func add() { note() }
      @inline(never) nonisolated func note() { count.add(1, ordering: .relaxed) }
    }
    let (jobs, steps) = (RunJobs(), Steps())
    jobs.current {
      Task.detached {
        await Task.yield()
        await steps.add()
        await MainActor.run { steps.note() }
        await steps.add()
      }
      while jobs.count() > 0 { jobs.perform() }
    }
    jobs.end()
    return steps.count.load(ordering: .relaxed) == 3 && !jobs.hasEscaped
  }
}

/// The executors on the threads of explorations: that of the main actor, and Swift's pool, to which `Task.yield` returns.
private final class StandIn: SerialExecutor, TaskExecutor {
  static let pool = StandIn(isMain: false)
  static let main = StandIn(isMain: true)
  private let isMain: Bool

  init(isMain: Bool) { self.isMain = isMain }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if cexploration_offer(unsafeBitCast(job, to: UnsafeMutableRawPointer.self), isMain) { return }
    // It has left its run for another thread.
    globalConcurrentExecutor.enqueue(job)
  }
}
