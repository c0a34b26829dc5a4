// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// A call of a hook, as known to its task, its context and the tasks that the hook starts. They may keep it for ever,
/// so it never holds the core and, once begun, neither the observer nor the post.
///
/// A task calls hooks, one after another, until none is left or one was cancelled. Structured concurrency can't abandon
/// a hook, since a parent waits for its children: so a hook is abandoned with its task, and the next hook has a new
/// one.
final class HookCall: RunningHook, HookExecutor.Call {
  /// The call that the current task is part of; it may have ended since.
  @TaskLocal static var current: HookCall?

  let id: CallID
  weak let core: LifecycleCore?
  let cause: LifecycleCause
  /// When its delivery began.
  let time: MonotonicTime

  /// The hook to call.
  private struct Start {
    let member: Member
    let hook: Int
    let step: LifecycleStep
  }

  private struct State {
    /// `nil` once the task has taken it.
    var start: Start?
    /// The task that runs the hook, as long as it does.
    var task: HookTask?
    /// Whether it was cancelled, maybe before it had a task.
    var isCancelled = false
  }
  /// Under it only locks of the runtime and of cancellation handlers are taken.
  private let state: Mutex<State>

  /// - Parameter call: A call of an observer's hook.
  init(_ id: CallID, _ call: borrowing Call, _ core: LifecycleCore) {
    self.id = id
    self.core = core
    cause = call.constants.cause
    time = call.constants.began
    state = Mutex(State(start: Start(member: call.member, hook: call.hook, step: call.step)))
  }

  var deadline: MonotonicTime? { core?.deadline(of: id) }
  var now: MonotonicTime { core?.now ?? time }
  func extendDeadline(by extra: Duration) { core?.handle(.extend(id, by: extra)) }

  /// Begins at once, on the calling thread, in a task of its own. That is detached: neither the priority nor the
  /// task-local values of the caller belong to the hooks.
  func begin() {
    guard let core else { return }
    // The core is held once: it is referenced weakly, which makes each retain slow. And each asynchronous function
    // between here and the hook would cost a change of executor.
    let task = HookTask(core.executor)
    Task.immediateDetached(executorPreference: task) {
      task.begin()
      var next: HookCall? = self
      while let call = next {
        let end = await HookCall.$current.withValue(call) { await call.run(in: task, for: core) }
        next = core.ended(call, end)
      }
    }
  }

  /// Calls the hook, in the current task. Returns how it has ended.
  private nonisolated(nonsending) func run(in task: HookTask, for core: LifecycleCore) async
    -> LifecycleMachine.CallEnd
  {
    guard let start = take(in: task), let target = start.member.target else { return .gone }
    let hook = start.member.hooks[start.hook]
    do {
      if let asActor = hook.asActor {
        guard core.move(id, to: .entering) else { return .completed }
        try await run(hook, start.step, on: asActor(target), target, core)
      } else {
        guard core.move(id, to: .begun) else { return .completed }
        try await hook.call(consume target, start.step, LifecycleContext(self))
      }
      return .completed
    } catch {
      // The text is rendered here, since that is user code: in the hook's task, within the hook's time.
      return .failed(Failure(error))
    }
  }

  /// Calls the hook on its actor, unless the call was abandoned while it waited for the actor.
  private func run(
    _ hook: Hook, _ step: LifecycleStep, on _: isolated any Actor,
    _ target: consuming any AnyObject & Sendable, _ core: LifecycleCore
  ) async throws {
    guard core.move(id, to: .begun) else { return }
    try await hook.call(target, step, LifecycleContext(self))
  }

  private func take(in task: HookTask) -> Start? {
    state.withLock { state in
      state.task = task
      // The hook has no handlers yet.
      if state.isCancelled { task.cancel() }
      return state.start.take()
    }
  }

  /// Releases its task, which can't be cancelled from now on. Returns whether it was not cancelled before.
  func end() -> Bool {
    state.withLock { state in
      state.task = nil
      return !state.isCancelled
    }
  }

  /// Cancels its task, now or as it begins, unless the call has ended. Not under the core's lock: handlers are user code.
  func cancel() {
    state.withLock { state in
      state.isCancelled = true
      state.task?.cancel()
    }
  }
}

/// A task that calls hooks, for other threads to cancel, and its executor, by which its jobs and those of its child
/// tasks are known. There is no `Task` to cancel while the first hook blocks the thread that makes it.
///
/// `@unchecked`: `cancel` is called only while the task runs a hook, and so exists.
private final class HookTask: HookQueue.Source, TaskExecutor, @unchecked Sendable {
  private let executor: HookExecutor
  /// The `UnsafeCurrentTask`, written once before any hook knows this. As `Any`, whose layout need not be determined at
  /// the start of the program.
  private var task: Any?

  init(_ executor: HookExecutor) { self.executor = executor }

  func begin() { task = withUnsafeCurrentTask { $0! } }

  func enqueue(_ job: consuming ExecutorJob) {
    executor.enqueue(.job(UnownedJob(job), on: self, of: self))
  }

  func cancel() { (task as? UnsafeCurrentTask)?.cancel() }
}

extension LifecycleContext {
  /// The context of the hook that the current task runs in; `nil` outside of a hook.
  public static var current: LifecycleContext? {
    guard let call = HookCall.current, call.deadline != nil else { return nil }
    return LifecycleContext(call)
  }
}
