// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Whether the current task goes on on Swift's pool, rather than on an executor of its own.
func isOfSwiftPool() -> Bool { withUnsafeCurrentTask { $0?.unownedTaskExecutor == nil } }

// What needs a thread of Swift's pool. Without one Dispatch would keep the caller's, which may be the one that listens, or
// the last that can call hooks: so it waits until there is one.
extension LifecycleCore {
  /// Whether Swift's pool has a thread. The thread that listens must know that of this moment, which takes some 15 µs. For
  /// another it is enough that one was had a while ago, by a caller of the pool's as a rule, whose own is still there.
  var swiftPoolHasThread: Bool {
    executor.isOnListener ? DispatchThreads.canBeHadNow : DispatchThreads.canBeHad
  }

  /// Does what starts a task of Swift's pool, or cancels one: now, or once the pool has a thread.
  func useSwiftPool(_ work: @escaping @Sendable () -> Void) {
    // In a mock time may never pass.
    if virtualTime != nil || DispatchThreads.canBeHadNow { return work() }
    warn("Swift's thread pool is exhausted; a task is waiting: raise TasksMax=.")
    Task.detached(executorPreference: executor) {
      repeat {
        try? await self.clock.sleep(for: .milliseconds(100))
      } while !DispatchThreads.canBeHadNow
      work()
    }
  }

  /// Cancels a task of the author's, elsewhere: its cancellation handlers are user code.
  func cancel<E>(_ task: Task<Void, E>) {
    executor.enqueue(.work { self.useSwiftPool { task.cancel() } })
  }

  /// Does what resumes tasks that are perhaps of Swift's pool: now, or in order once that has a thread.
  func resume(_ resumption: @escaping @Sendable () -> Void) {
    let hasThread = virtualTime != nil || swiftPoolHasThread
    let isFirst: Bool? = state.withLock { state in
      guard state.heldResumptions == nil else {
        state.heldResumptions?.append(resumption)
        return false
      }
      if hasThread { return nil }
      state.heldResumptions = [resumption]
      return true
    }
    guard let isFirst else { return resumption() }
    if isFirst { useSwiftPool { self.resumeHeld() } }
  }

  private func resumeHeld() {
    while true {
      let held = state.withLock { state in
        let held = state.heldResumptions ?? []
        state.heldResumptions = held.isEmpty ? nil : []
        return held
      }
      if held.isEmpty { return }
      for resumption in held { resumption() }
    }
  }

  /// Ends sleeps whose time has come.
  func end(_ sleepers: [Sleeper]) {
    for sleeper in sleepers where !sleeper.isOfPool { sleeper.end() }
    let others = sleepers.filter(\.isOfPool)
    if !others.isEmpty { resume { for sleeper in others { sleeper.end() } } }
  }
}
