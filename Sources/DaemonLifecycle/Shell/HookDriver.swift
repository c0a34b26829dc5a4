// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

/// A task that awaits hooks, one after another, on the subject's executor. When its hook ends it takes the next one,
/// and rests while there is none: continuing costs a third of what a new task does.
///
/// A hook can't be abandoned by structured means, since a parent waits for its children; so a hook is
/// abandoned by abandoning its driver, which stays cancelled, and another driver goes on.
final class HookDriver: HookExecutor.Driver {
  private enum Phase {
    /// Its task is in a call, or goes to its rest, or rests. It holds neither an observer nor the core.
    case drives
    /// It was given this call, which its task has not taken yet. Not captured by the task, which would hold it until it
    /// ends.
    case holds(HookCall, LifecycleCore)
    /// Its task ends.
    case over
  }

  /// No other lock is taken while holding this one's.
  private struct State {
    var phase = Phase.drives
    /// Whether a task was made, or is about to be.
    var hasBegun = false
    /// `nil` until the first call, and for a moment after it: the task may rest, and be given the next, by then.
    var task: Task<Void, Never>?
    var rest: UnsafeContinuation<Void, Never>?
    /// Whether its call was cancelled, maybe before there was a task. It is not used for another.
    var isCancelled: Bool
  }

  private let executor: HookExecutor
  private let state: Mutex<State>
  /// Whether the task's next job begins a call, which is urgent; set before that job is enqueued.
  private let isNextUrgent = Atomic<Bool>(false)
  /// The thread (pthread_self(3)) on which the task is about to be suspended for its rest; 0 when there is none. The rest
  /// is over only when the job has returned: of a continuation that is resumed before it is awaited, the thread sanitizer
  /// sees a race.
  private let suspending = Atomic<UInt>(0)

  /// - Parameter isCancelled: Whether its call was cancelled while it waited.
  init(_ executor: HookExecutor, isCancelled: Bool = false) {
    self.executor = executor
    state = Mutex(State(isCancelled: isCancelled))
  }

  /// Begins with `call` and goes on as long as the core has more. Called for a new driver, or one that rests, or is about
  /// to.
  func start(with call: HookCall, of core: LifecycleCore) {
    let isNew = update { state in
      state.phase = .holds(call, core)
      isNextUrgent.store(true, ordering: .relaxed)
      defer { state.hasBegun = true }
      return !state.hasBegun
    }
    guard isNew else { return }
    // Detached: neither the priority nor the task-local values of the caller belong to the hooks.
    let task = Task.detached(executorPreference: self) { await self.work() }
    let isCancelled = state.withLock { state in
      state.task = task
      return state.isCancelled
    }
    // Elsewhere, since the hook may have begun, and its cancellation handlers are user code.
    if isCancelled { executor.enqueue(.work { task.cancel() }) }
  }

  private func work() async {
    while await drive() { await rest() }
  }

  /// Calls hooks until there is no next one; a function of its own, after which nothing holds the last call, its observer
  /// or the core. Returns whether the driver rests.
  private func drive() async -> Bool {
    // The core is held once: it is referenced weakly, which makes each retain slow.
    guard case .holds(let first, let core) = takePhase() else { return false }
    var call = first
    while true {
      let end = await call.run(for: core)
      switch core.ended(call, end, isCancelled: Task.isCancelled) {
      case .next(let next): call = next
      case .rest: return true
      case .end: return false
      }
    }
  }

  @inline(never) private func takePhase() -> Phase {
    state.withLock { state in
      defer { state.phase = .drives }
      return state.phase
    }
  }

  private func rest() async {
    await withUnsafeContinuation { setRest($0) }
  }

  @inline(never) private func setRest(_ rest: UnsafeContinuation<Void, Never>) {
    state.withLock { state in
      suspending.store(clinux_this_thread(), ordering: .relaxed)
      state.rest = rest
    }
  }

  // A child task of the last hook may return on another thread at the same time.
  func jobReturned() {
    guard suspending.load(ordering: .relaxed) == clinux_this_thread() else { return }
    update { _ in suspending.store(0, ordering: .relaxed) }
  }

  /// Ends the task, which rests or is about to.
  func end() { update { $0.phase = .over } }

  /// Changes the state. A task that rests goes on when there is something to do.
  @discardableResult private func update<T>(_ change: (inout State) -> T) -> T {
    let (result, rest) = state.withLock { state -> (T, UnsafeContinuation<Void, Never>?) in
      let result = change(&state)
      if case .drives = state.phase { return (result, nil) }
      return (result, suspending.load(ordering: .relaxed) == 0 ? state.rest.take() : nil)
    }
    rest?.resume()
    return result
  }

  /// Its handlers are user code, so not under the core's lock.
  func cancel() {
    let task = state.withLock { state in
      state.isCancelled = true
      return state.task
    }
    task?.cancel()
  }

  /// Takes the jobs of the task, its child tasks and the actors that it enters to the subject's threads.
  func enqueue(_ job: consuming ExecutorJob) {
    let isUrgent =
      isNextUrgent.load(ordering: .relaxed) && isNextUrgent.exchange(false, ordering: .relaxed)
    executor.enqueue(.step(UnownedJob(job), of: self, isUrgent: isUrgent))
  }
}
