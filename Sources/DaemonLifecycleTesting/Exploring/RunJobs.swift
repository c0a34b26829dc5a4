// SPDX-License-Identifier: Apache-2.0
internal import CExploration
import DaemonLifecycle
import Synchronization

/// The jobs of one run of a daemon. Each waits here until the explorer performs it, on its own thread: hooks, tasks,
/// actors, and what is isolated to the main actor.
final class RunJobs: Sendable {
  private enum Job {
    case pool(UnownedJob)
    case main(UnownedJob)
    case hook(@Sendable (UnownedSerialExecutor) -> Void)
  }

  private struct State {
    /// In the order in which they became ready.
    var ready: [Job] = []
    /// Whether another thread has resumed a job.
    var hasEscaped = false
    /// The tasks that `owners` has as this run's.
    var tasks: Set<UInt64> = []
    /// Whether what becomes ready is dropped, since the run has ended.
    var isOver = false
  }
  private let state = Mutex(State())

  /// The executor of work in the foreground.
  static var pool: any TaskExecutor { StandIn.pool }

  /// The number of jobs that are ready, with those of the run's core.
  func count(of core: LifecycleCore? = nil) -> Int {
    while let hook = core?.takeReady() { state.withLock { $0.ready.append(.hook(hook)) } }
    return state.withLock(\.ready.count)
  }

  var hasEscaped: Bool { state.withLock(\.hasEscaped) }

  /// Performs one of the jobs that are ready.
  func perform(_ index: Int = 0) {
    // Isolated to an executor that a job can't leave without becoming ready again elsewhere: each step is a choice.
    let here = StandIn.pool.asUnownedSerialExecutor()
    switch state.withLock({ $0.ready.remove(at: index) }) {
    case .pool(let job):
      job.runSynchronously(isolatedTo: here, taskExecutor: StandIn.pool.asUnownedTaskExecutor())
    case .main(let job): job.runSynchronously(on: StandIn.main.asUnownedSerialExecutor())
    case .hook(let hook): hook(here)
    }
  }

  /// Drops what is ready, and what will be.
  func end() {
    state.withLock { state in
      state.isOver = true
      state.ready = []
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

  /// Sets the runtime's hooks, and has `body` know the tasks of its runs on other threads, too.
  static func capturing<T>(_ body: () throws -> T) rethrows -> T {
    let main = unsafeBitCast(
      StandIn.main.asUnownedSerialExecutor(),
      to: (UnsafeMutableRawPointer, UnsafeRawPointer).self)
    owners.withLock { _ in cexploration_install(take, main.0, main.1) }
    cexploration_count(1)
    defer {
      cexploration_count(-1)
      owners.withLock { owners in owners = owners.filter { !$0.value.state.withLock(\.isOver) } }
    }
    return try body()
  }

  private static let take: cexploration_take = { run, job, task, isForMain in
    let its = run.map { Unmanaged<RunJobs>.fromOpaque($0).takeUnretainedValue() }
    if let its, task != 0, its.state.withLock({ $0.tasks.insert(task).inserted }) {
      owners.withLock { $0[task] = its }
    }
    guard let jobs = its ?? owners.withLock({ $0[task] }) else { return false }
    let job = unsafeBitCast(job, to: UnownedJob.self)
    jobs.state.withLock { state in
      if run == nil { state.hasEscaped = true }
      if !state.isOver { state.ready.append(isForMain ? .main(job) : .pool(job)) }
    }
    return true
  }

  /// Whether this version of Swift hands all jobs over: of a task, of one that yields, of an actor, of the main actor.
  static func check() -> Bool {
    actor Steps {
      let count = Atomic<Int>(0)
      func add() { count.add(1, ordering: .relaxed) }
    }
    let (jobs, steps) = (RunJobs(), Steps())
    jobs.current {
      Task.detached {
        await Task.yield()
        await steps.add()
        await MainActor.run { MainActor.preconditionIsolated() }
        await steps.add()
      }
      while jobs.count() > 0 { jobs.perform() }
    }
    jobs.end()
    return steps.count.load(ordering: .relaxed) == 2 && !jobs.hasEscaped
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
