// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Whether the current task continues on Swift's pool, rather than on a task executor of its own.
func isOfSwiftPool() -> Bool { withUnsafeCurrentTask { $0?.unownedTaskExecutor == nil } }

// Work that needs a thread of Swift's pool. Without a free thread Dispatch blocks its caller, perhaps the listening
// thread or the last thread for hooks. So the work waits for a free thread.
extension LifecycleCore {
  /// Whether Swift's pool has a thread. The listening thread needs the answer for this very moment (some 15 µs). For
  /// others a thread seen some seconds ago will do: as a rule they run on it.
  var swiftPoolHasThread: Bool {
    executor.isOnListener ? DispatchThreads.canBeHadNow : DispatchThreads.canBeHad
  }

  /// Runs work that starts or cancels a task of Swift's pool: now, or once the pool has a thread.
  func useSwiftPool(_ work: @escaping @Sendable () -> Void) {
    // In a mock time may never pass, so nothing waits.
    if virtualTime != nil || DispatchThreads.canBeHadNow { return work() }
    warn("Swift's thread pool is exhausted; a task is waiting: raise TasksMax=.")
    Task.detached(executorPreference: executor) {
      repeat {
        try? await self.clock.sleep(for: .milliseconds(100))
      } while !DispatchThreads.canBeHadNow
      work()
    }
  }

  /// Cancels an author's task, on another thread: its cancellation handlers are user code.
  func cancel<E>(_ task: Task<Void, E>) {
    executor.enqueue(.work { self.useSwiftPool { task.cancel() } })
  }

  /// Resumes tasks that may be on Swift's pool: now, or in order, once the pool has a thread.
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
