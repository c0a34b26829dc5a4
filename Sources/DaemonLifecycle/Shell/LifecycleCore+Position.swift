// SPDX-License-Identifier: Apache-2.0
import Synchronization

// For code that keeps the daemon in the background for a reason of its own, such as a lease.
extension LifecycleCore {
  /// Where the daemon is. A tuple, since a type's metadata would be larger than all the rest here.
  ///
  /// - `isSettled`: it is in the background, and no transition is under way: work has ended, and state is saved.
  /// - `hasReason`, `hasOthers`: whether it has this reason to be there, and whether it has any other.
  /// - `hasAbandonedHooks`: an abandoned hook still runs, or waits for its executor, where other work may still run.
  package typealias Position = (
    isSettled: Bool, hasReason: Bool, hasOthers: Bool, hasAbandonedHooks: Bool,
    isTerminating: Bool, isOver: Bool
  )

  @inline(never) package func position(for reason: BackgroundReason) -> Position {
    state.withLock { state in
      let reasons = state.machine.registry.backgroundReasons
      let isThere = reasons.contains(reason)
      return (
        state.machine.registry.state == .background && state.machine.registry.transition == nil,
        isThere, reasons.count > (isThere ? 1 : 0), !state.machine.calls.unfinished.isEmpty,
        state.machine.isTerminating,
        state.machine.isClosed || state.machine.registry.state == .terminated
      )
    }
  }

  /// Cuts a stop that has begun down to its saves, as a second signal does.
  package func hurry() { handle(.hurry) }

  /// Handles the daemon's own request before this returns. Unlike other inputs, it does not launch a mock. Not to be
  /// called under a lock that a part takes as it receives a fact.
  package func takeOwn(_ event: LifecycleEvent) { handle(.event(event)) }
}
