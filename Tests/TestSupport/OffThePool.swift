// SPDX-License-Identifier: Apache-2.0
import Foundation
package import Testing

/// Runs synchronous tests that compute or block for long on threads of their own, two for all of them.
///
/// Swift's pool has as many threads as there are processors. Were they in tests that explore a million states or wait for
/// a bus, no task of another test would get its turn meanwhile.
package struct OffThePool: SuiteTrait, TestTrait, TestScoping {
  package var isRecursive: Bool { true }

  package func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(SideThreads.shared) { try await function() }
  }
}

extension Trait where Self == OffThePool {
  /// Runs the synchronous tests of a suite off Swift's pool.
  package static var offThePool: Self { Self() }
}

private final class SideThreads: TaskExecutor {
  static let shared = SideThreads(count: 2)

  /// Signalled and read with its lock held, as `jobs` is.
  private let condition = NSCondition()
  /// Guarded by `condition`.
  nonisolated(unsafe) private var jobs: [UnownedJob] = []

  private init(count: Int) {
    for _ in 0..<count { Thread.detachNewThread { self.work() } }
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    condition.withLock {
      jobs.append(job)
      condition.signal()
    }
  }

  private func work() -> Never {
    while true {
      let job = condition.withLock {
        while jobs.isEmpty { condition.wait() }
        return jobs.removeFirst()
      }
      job.runSynchronously(on: asUnownedTaskExecutor())
    }
  }
}
