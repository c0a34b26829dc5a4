import Synchronization

/// A task that awaits hooks, one after another, on the subject's executor. It takes the next one that begins when its
/// own ends.
///
/// A hook can't be abandoned by structured means, since a parent waits for its children; so a hook is
/// abandoned by abandoning its driver, which stays cancelled, and another driver goes on.
final class HookDriver: TaskExecutor {
  let core: LifecycleCore
  private let task = Mutex<Task<Void, Never>?>(nil)
  /// Set before `cancelTask`: either that finds the task, or `start` finds this. A cancelled task can't be used for
  /// another hook.
  private let cancellation = Atomic<Bool>(false)
  /// Where it called the last hook that might have gone on elsewhere.
  private let callSite = Mutex<HookCall.Site?>(nil)
  /// The task has been enqueued for the first time.
  private let hasBegun = Atomic<Bool>(false)

  init(_ core: LifecycleCore) { self.core = core }

  var isCancelled: Bool { cancellation.load(ordering: .relaxed) }

  /// Begins with `call` and goes on as long as the core has more.
  func start(with call: HookCall) {
    // Detached: neither the priority nor the task-local values of whoever caused it belong to the hooks.
    let task = Task.detached(executorPreference: self) {
      // Held once: the core is referenced weakly, which makes each retain slow.
      let core = call.core
      var next: HookCall? = call
      while let call = next { next = core.ended(call, await call.run()) }
    }
    self.task.withLock { $0 = task }
    if isCancelled { task.cancel() }
  }

  /// A flag first: the core cancels under its lock, and the task's handlers must not run there.
  func markCancelled() { cancellation.store(true, ordering: .relaxed) }
  func cancelTask() { task.withLock { $0 }?.cancel() }

  func note(_ site: HookCall.Site) { callSite.withLock { $0 = site } }
  /// `nil` if the hook was called where it stays.
  func site(of call: CallID) -> HookCall.Site? {
    callSite.withLock { $0 }.flatMap { $0.call == call ? $0 : nil }
  }

  /// Takes the jobs of the task, its child tasks and the actors that it enters to the subject's threads. The first one
  /// begins a hook, which is urgent.
  func enqueue(_ job: consuming ExecutorJob) {
    let isFirst = !hasBegun.exchange(true, ordering: .relaxed)
    core.executor.enqueue(.job(UnownedJob(job), on: self, isUrgent: isFirst))
  }
}
