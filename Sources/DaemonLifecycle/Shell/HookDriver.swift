import Synchronization

/// A task that awaits hooks, one after another, on the subject's executor. It takes the next one that begins when its
/// own ends.
///
/// A hook can't be abandoned by structured means, since a parent waits for its children; so a hook is
/// abandoned by abandoning its driver, which stays cancelled, and another driver goes on.
final class HookDriver: TaskExecutor {
  private struct State {
    var task: Task<Void, Never>?
    /// A cancelled task can't be used for another hook.
    var isCancelled = false
  }
  let core: LifecycleCore
  private let state = Mutex(State())
  /// The task has been enqueued for the first time.
  private let hasBegun = Atomic<Bool>(false)

  init(_ core: LifecycleCore) { self.core = core }

  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// Begins with `call` and goes on as long as the core has more.
  func start(with call: HookCall) {
    // Detached: neither the priority nor the task-local values of whoever caused it belong to the hooks.
    let task = Task.detached(executorPreference: self) {
      var next: HookCall? = call
      while let call = next { next = await call.run() }
    }
    let isCancelled = state.withLock { state in
      state.task = task
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
  }

  /// A flag first: the core cancels under its lock, and the task's handlers must not run there.
  func markCancelled() { state.withLock { $0.isCancelled = true } }
  func cancelTask() { state.withLock { $0.task }?.cancel() }

  /// Takes the jobs of the task, its child tasks and the actors that it enters to the subject's threads. The first one
  /// begins a hook, which is urgent.
  func enqueue(_ job: consuming ExecutorJob) {
    let isFirst = !hasBegun.exchange(true, ordering: .relaxed)
    core.executor.enqueue(.job(UnownedJob(job), on: self, isUrgent: isFirst))
  }
}
