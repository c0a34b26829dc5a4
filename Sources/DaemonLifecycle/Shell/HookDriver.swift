// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

/// A task that awaits hooks, one after another, on the subject's executor. When its hook ends it takes the next one,
/// and rests while there is none: continuing costs a third of what a new task does.
///
/// A hook can't be abandoned by structured means, since a parent waits for its children; so a hook is
/// abandoned by abandoning its driver, which stays cancelled, and another driver goes on.
final class HookDriver: HookExecutor.Driver {
  /// Weak, so that a resting driver does not retain it; one that has a call does.
  private weak let core: LifecycleCore?
  private let executor: HookExecutor
  private let task = Mutex<Task<Void, Never>?>(nil)
  /// The call that the task begins with, or goes on with after its rest, until it has. `nil` ends it. Not captured by
  /// the task, which would hold it until it ends, nor given to the continuation: one that is resumed before it is
  /// awaited orders no memory that the thread sanitizer sees.
  private let nextCall = Mutex<(call: HookCall, core: LifecycleCore)?>(nil)
  /// The rest of the task, which is over only when the job has returned: of a continuation that is resumed before it is
  /// awaited, the thread sanitizer sees a race.
  private struct Rest {
    let continuation: UnsafeContinuation<Void, Never>
    /// The thread (pthread_self(3)) on which the task is about to be suspended; 0 once it is.
    var thread = clinux_this_thread()
    var isOver = false
  }
  private let rest = Mutex<Rest?>(nil)
  /// Set before `cancelTask`: either that finds the task, or `start` finds this. A cancelled task can't be used for
  /// another hook. Relaxed: the mutex of `task` orders the one before the other.
  private let cancellation = Atomic<Bool>(false)
  /// The place of the last call whose hook might have continued elsewhere.
  private let callSite = Mutex<HookCall.Site?>(nil)
  /// The task has been enqueued since `start`. Relaxed: what resumes or makes the task comes in between.
  private let hasBegun = Atomic<Bool>(false)

  init(_ core: LifecycleCore) {
    self.core = core
    executor = core.executor
  }

  var isCancelled: Bool { cancellation.load(ordering: .relaxed) }

  /// Begins with `call` and goes on as long as the core has more. Called for a new driver, or one that rests.
  func start(with call: HookCall, of core: LifecycleCore) {
    hasBegun.store(false, ordering: .relaxed)
    nextCall.withLock { $0 = (call, core) }
    if !endRest() {
      // Detached: neither the priority nor the task-local values of the caller belong to the hooks.
      let task = Task.detached(executorPreference: self) { await self.work() }
      self.task.withLock { $0 = task }
    }
    if isCancelled { cancelTask() }
  }

  private func work() async {
    while await driveNext(), !isCancelled, !Task.isCancelled { await takeRest() }
  }

  /// A function of its own, after which nothing holds the last call, its observer or the core. False if there is no
  /// next call.
  private func driveNext() async -> Bool {
    // The core is held once: it is referenced weakly, which makes each retain slow.
    guard let (first, core) = nextCall.withLock({ $0.take() }) else { return false }
    var next = first
    while let call = core.ended(next, await next.run(for: core)) { next = call }
    return true
  }

  private func takeRest() async {
    await withUnsafeContinuation { continuation in
      rest.withLock { $0 = Rest(continuation: continuation) }
      if core?.rest(self) != true { endRest() }
    }
  }

  // A child task of the last hook may return on another thread at the same time.
  func jobReturned() { update { if $0.thread == clinux_this_thread() { $0.thread = 0 } } }

  /// The task goes on with its next call, or ends. False if it does not rest.
  @discardableResult func endRest() -> Bool { update { $0.isOver = true } }

  @discardableResult private func update(_ change: (inout Rest) -> Void) -> Bool {
    let (rests, ended) = rest.withLock { rest -> (Bool, UnsafeContinuation<Void, Never>?) in
      rest.update(change)
      guard let now = rest, now.isOver, now.thread == 0 else { return (rest != nil, nil) }
      rest = nil
      return (true, now.continuation)
    }
    ended?.resume()
    return rests
  }

  /// A flag first: the core cancels under its lock, and the task's handlers must not run there.
  func markCancelled() { cancellation.store(true, ordering: .relaxed) }
  func cancelTask() { task.withLock { $0 }?.cancel() }

  func note(_ site: HookCall.Site) { callSite.withLock { $0 = site } }

  /// The actual progress of a hook that has begun, as far as its place tells: a class's hook may be isolated to the
  /// main actor.
  func executionStatus(
    of call: CallID, _ beacon: MainActorBeacon
  ) -> LifecycleReport.Outcome.Progress {
    // Without one its hook stays where it was called.
    guard let site = callSite.withLock({ $0 }), site.call == call else { return .running }
    if site.item.isRunning || beacon.isAnswered(site.beacon) { return .running }
    return beacon.hasEverAnswered ? .waitingForExecutor : .unknown
  }

  /// Takes the jobs of the task, its child tasks and the actors that it enters to the subject's threads. The first one
  /// begins a hook, which is urgent.
  func enqueue(_ job: consuming ExecutorJob) {
    let isFirst = !hasBegun.exchange(true, ordering: .relaxed)
    executor.enqueue(.step(UnownedJob(job), of: self, isUrgent: isFirst))
  }
}
