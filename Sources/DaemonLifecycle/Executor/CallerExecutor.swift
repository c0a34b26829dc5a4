// SPDX-License-Identifier: Apache-2.0
/// An executor on which the caller of `run` continues, on the subject's thread, after `run` has returned.
///
/// A task that leaves `withTaskExecutorPreference` hops back to its previous executor; for a caller that is not
/// isolated that is the cooperative pool, which may be blocked. The runtime skips the hop when the thread counts as the
/// pool's already, so jobs that are enqueued here run under the pool's name. Hooks must not, since each of their steps
/// would hop.
final class CallerExecutor: TaskExecutor {
  private let executor: HookExecutor

  init(_ executor: HookExecutor) { self.executor = executor }

  func enqueue(_ job: consuming ExecutorJob) {
    executor.enqueue(.job(UnownedJob(job), on: globalConcurrentExecutor, of: nil))
  }
}
