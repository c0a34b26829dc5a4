// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A serial executor that runs an actor on the subject's own threads, so that its hooks run even while Swift's
/// cooperative pool is blocked.
///
/// A default actor that is waiting for the cooperative pool can't run anything else while the pool is blocked. An actor
/// on a serial executor of the subject can:
///
/// ```swift
/// actor Database: SaveObserver {
///   private let executor: LifecycleSerialExecutor
///   nonisolated var unownedExecutor: UnownedSerialExecutor {
///     executor.asUnownedSerialExecutor()
///   }
///   init(lifecycle: any LifecycleObservable) {
///     executor = lifecycle.makeSerialExecutor()
///   }
///   func shouldSaveState(_ notification: ShouldSaveState) async throws { … }
/// }
/// ```
///
/// Make one for each actor, since actors that share one wait for each other. In hooks, sleep on the subject's clock:
/// `Task.sleep` depends on Dispatch.
public final class LifecycleSerialExecutor: SerialExecutor {
  private let executor: HookExecutor
  /// The jobs to run. The first is being run, or an item of the executor is scheduled to run it.
  private let queue = Mutex(Deque<UnownedJob>())

  init(executor: HookExecutor) { self.executor = executor }

  /// Adds a job of the actor, for the runtime's use.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let isFirst = queue.withLock { queue in
      queue.append(job)
      return queue.count == 1
    }
    if isFirst { executor.enqueue(.work { self.runNext() }) }
  }

  /// Runs one job, so that actors take turns.
  private func runNext() {
    guard let job = queue.withLock(\.first) else { return }
    executor.serialTurns.add(1, ordering: .relaxed)
    job.runSynchronously(on: asUnownedSerialExecutor())
    executor.serialTurns.subtract(1, ordering: .relaxed)
    let goesOn = queue.withLock { queue in
      _ = queue.popFirst()
      return !queue.isEmpty
    }
    if goesOn { executor.enqueue(.work { self.runNext() }) }
  }
}
