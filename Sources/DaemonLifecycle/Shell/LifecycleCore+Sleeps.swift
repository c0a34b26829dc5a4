// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd
import Synchronization

// Sleeps on the clock, and actions at a time.
extension LifecycleCore {
  func add(_ sleeper: Sleeper, until deadline: MonotonicTime) {
    let isClosed = change { state, _ in
      guard !state.machine.isClosed else { return true }
      state.timers.add(sleeper, at: deadline)
      return false
    }
    if isClosed {
      // Not at once: a loop that ignores the error must not spin.
      Task.detached {
        try? await Task.sleep(for: .milliseconds(100))
        sleeper.end(throwing: CancellationError())
      }
    }
    // A cancellation before it was added did not find it here.
    if sleeper.hasEnded { remove(sleeper) }
  }

  @inline(never) package func remove(_ sleeper: Sleeper) {
    change { state, _ in state.timers.remove(sleeper) }
  }

  /// Performs an action on the listening thread at a time, or earlier if it is already scheduled earlier.
  ///
  /// It does not use `change`, whose end shows the readiness to parts: a part that fails then is scheduled here.
  @inline(never) package func schedule(_ action: Sleeper, at deadline: MonotonicTime) {
    let hasDeadline = state.withLock { state in
      if state.machine.isClosed { return false }
      state.timers.add(action, at: min(deadline, action.queued?.deadline ?? .distantFuture))
      return arm(state)
    }
    if hasDeadline { executor.listenIfMissing() }
  }

  /// Handles the deadline that was set.
  package func timePassed() {
    let expired = change { state, now in
      state.handle(.clock, at: now)
      return state.timers.removeExpired(at: now)
    }
    end(expired)
  }
}
