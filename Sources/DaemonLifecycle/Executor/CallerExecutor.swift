// SPDX-License-Identifier: Apache-2.0
/// Lets the caller of `run` go on, on the subject's thread, after `run` has returned.
///
/// A task that leaves `withTaskExecutorPreference` hops back to where it came from; for a caller that is not
/// isolated that is the cooperative pool, which may be blocked. The runtime leaves the hop out when the
/// thread counts as the pool's already, so jobs that are enqueued here run under the pool's name. Hooks
/// must not: every step of theirs would hop.
final class CallerExecutor: TaskExecutor {
  private let executor: HookExecutor

  init(_ executor: HookExecutor) { self.executor = executor }

  func enqueue(_ job: consuming ExecutorJob) {
    executor.enqueue(.job(UnownedJob(job), on: globalConcurrentExecutor, isUrgent: true))
  }
}
