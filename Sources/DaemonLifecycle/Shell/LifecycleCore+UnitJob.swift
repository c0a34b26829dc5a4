// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd
import Synchronization

// The systemd job that terminates the service, which is read over the bus when a drain, and when the termination, begins.
extension LifecycleCore {
  enum UnitJobAnswer: Sendable {
    /// Unknown. While the daemon terminates a source asks for it, if there is one; the sleepers wait for the reply.
    case unknown([Sleeper])
    /// Known; `nil` when there is no job, or it could not be read.
    case known(UnitJob?)
  }

  /// - Parameter isFinal: Whether none takes the place of one that was known, as a test may want it.
  package func unitJobIsKnown(_ job: UnitJob?, isFinal: Bool = false) {
    let waiters: [Sleeper] = change { state, _ in
      // It is asked for again when the termination begins.
      if job == nil, !isFinal, state.machine.stop.isDraining { return [] }
      guard case .unknown(let waiters) = state.unitJob else {
        if job != nil || isFinal { state.unitJob = .known(job) }
        return []
      }
      state.unitJob = .known(job)
      for waiter in waiters { state.timers.remove(waiter) }
      return waiters
    }
    end(waiters)
  }

  nonisolated(nonsending) func unitJob(within limit: Duration) async -> UnitJob? {
    let sleeper = Sleeper()
    let isAsked = state.withLock { state in
      guard state.asksForUnitJob, state.machine.isTerminating,
        case .unknown(let waiters) = state.unitJob
      else { return false }
      state.unitJob = .unknown(waiters + [sleeper])
      return true
    }
    // Woken by the answer, the limit or a cancellation: in any case by what is known then.
    if isAsked { try? await clock.sleep(sleeper, until: clock.now.advanced(by: limit)) }
    return state.withLock { state in
      if case .known(let job) = state.unitJob {
        return state.machine.isTerminating || state.machine.stop.isDraining ? job : nil
      }
      if case .unknown(let waiters) = state.unitJob {
        state.unitJob = .unknown(waiters.filter { $0 !== sleeper })
      }
      return nil
    }
  }

  var clock: LifecycleClock { LifecycleClock(keeper: self) }
}
