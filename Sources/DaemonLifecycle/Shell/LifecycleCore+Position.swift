// SPDX-License-Identifier: Apache-2.0
import Synchronization

// For what keeps the daemon in the background for a reason of its own, as a lease does.
extension LifecycleCore {
  /// Where the daemon is. A tuple, since the metadata of a type is more than all else here.
  ///
  /// - `isSettled`: it is in the background, and no transition is under way: work has ended, and state is saved.
  /// - `hasReason`, `hasOthers`: whether the reason is there, and whether any other is.
  /// - `hasAbandonedHooks`: one has not ended, or never got its executor, where others may work on.
  /// - `isLost`: other code has closed the daemon's descriptors, so that it ends.
  package typealias Position = (
    isSettled: Bool, hasReason: Bool, hasOthers: Bool, hasAbandonedHooks: Bool,
    isTerminating: Bool, isOver: Bool, isLost: Bool
  )

  @inline(never) package func position(for reason: BackgroundReason) -> Position {
    state.withLock { state in
      let reasons = state.machine.registry.backgroundReasons
      let isThere = reasons.contains(reason)
      return (
        state.machine.registry.state == .background && state.machine.registry.transition == nil,
        isThere, reasons.count > (isThere ? 1 : 0), !state.machine.calls.unfinished.isEmpty,
        state.machine.isTerminating,
        state.machine.isClosed || state.machine.registry.state == .terminated,
        state.machine.stop.isLost
      )
    }
  }

  /// Leaves a stop that has begun nothing but its saves, as a second signal does.
  package func hurry() { handle(.hurry) }

  /// Handles a request of the daemon's own before this returns: beside a mock's inputs, which launch it. Not to be called under
  /// a lock that a part takes as it receives a fact.
  package func takeOwn(_ event: LifecycleEvent) { handle(.event(event)) }
}
