// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd
import Synchronization

// The systemd job that terminates the service, which is read over the bus when a drain, and when the termination, begins.
extension LifecycleCore {
  /// - Parameter isFinal: Whether `nil` replaces a job that is known, as a test may require.
  package func unitJobIsKnown(_ job: UnitJob?, isFinal: Bool = false) {
    let waiters: [Sleeper] = change { state, _ in
      // It is asked for again when the termination begins.
      if job == nil, !isFinal, state.machine.stop.isDraining { return [] }
      if state.unitJob == nil || job != nil || isFinal { state.unitJob = .some(job) }
      defer { state.unitJobWaiters = [] }
      for waiter in state.unitJobWaiters { state.timers.remove(waiter) }
      return state.unitJobWaiters
    }
    end(waiters)
  }

  nonisolated(nonsending) func unitJob(within limit: Duration) async -> UnitJob? {
    let sleeper = Sleeper()
    // Woken by the answer, the limit or a cancellation; the result is the job that is known then.
    if waitsForUnitJob(sleeper) {
      try? await clock.sleep(sleeper, until: clock.now.advanced(by: limit))
    }
    return unitJob(removing: sleeper)
  }

  /// Adds a waiter if the job is asked for and not known yet. Returns whether it did.
  @inline(never) private func waitsForUnitJob(_ waiter: Sleeper) -> Bool {
    state.withLock { state in
      let isAsked = state.asksForUnitJob && state.machine.isTerminating && state.unitJob == nil
      if isAsked { state.unitJobWaiters.append(waiter) }
      return isAsked
    }
  }

  @inline(never) private func unitJob(removing waiter: Sleeper) -> UnitJob? {
    state.withLock { state in
      state.unitJobWaiters.removeAll { $0 === waiter }
      return state.machine.isTerminating || state.machine.stop.isDraining
        ? state.unitJob ?? nil : nil
    }
  }

  var clock: LifecycleClock { LifecycleClock(keeper: self) }
}
