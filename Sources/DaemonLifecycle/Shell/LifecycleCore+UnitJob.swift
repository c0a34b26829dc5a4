// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd
import Synchronization

// The systemd job that terminates the service, which is read over the bus when the termination begins.
extension LifecycleCore {
  enum UnitJobAnswer: Sendable {
    /// Not requested: the daemon does not terminate, or there is no bus.
    case notAsked
    /// Requested; the sleepers wait for the reply.
    case asked([Sleeper])
    /// Known; `nil` when there is no job, or it could not be read.
    case known(UnitJob?)
  }

  /// Notes that a source has requested the job, since the termination begins.
  func expectUnitJob(_ state: inout State) {
    if state.asksForUnitJob, case .notAsked = state.unitJob { state.unitJob = .asked([]) }
  }

  package func unitJobIsKnown(_ job: UnitJob?) {
    let waiters: [Sleeper] = change { state, _ in
      defer { state.unitJob = .known(job) }
      guard case .asked(let waiters) = state.unitJob else { return [] }
      for waiter in waiters { state.timers.remove(waiter) }
      return waiters
    }.result
    for waiter in waiters { waiter.end() }
  }

  nonisolated(nonsending) func unitJob(within limit: Duration) async -> UnitJob? {
    let sleeper = Sleeper()
    let isAsked = state.withLock { state in
      guard case .asked(let waiters) = state.unitJob else { return false }
      state.unitJob = .asked(waiters + [sleeper])
      return true
    }
    // Woken by the answer, the limit or a cancellation: in any case by what is known then.
    if isAsked { try? await clock.sleep(sleeper, until: clock.now.advanced(by: limit)) }
    return state.withLock { state in
      if case .known(let job) = state.unitJob { return job }
      if case .asked(let waiters) = state.unitJob {
        state.unitJob = .asked(waiters.filter { $0 !== sleeper })
      }
      return nil
    }
  }

  private var clock: LifecycleClock { LifecycleClock(keeper: self) }
}
