// SPDX-License-Identifier: Apache-2.0
/// Where the daemon is, for a part that keeps it in the background for a reason of its own.
package struct LifecyclePosition: Sendable {
  /// Whether it is in the background and no transition is under way: work has ended, and state is saved.
  package var isSettledInBackground: Bool
  /// Whether the part's own reason is there, and whether any other is.
  package var hasReason, hasOthers: Bool
  /// Whether a hook that was abandoned still runs.
  package var hasAbandonedHooks: Bool
  /// Whether it terminates, and whether it has.
  package var isTerminating, isOver: Bool
  /// Whether other code has closed its descriptors, so that it ends.
  package var isLost: Bool
}

extension LifecycleMachine {
  func position(for reason: BackgroundReason) -> LifecyclePosition {
    let isThere = registry.backgroundReasons.contains(reason)
    return LifecyclePosition(
      isSettledInBackground: registry.state == .background && !registry.isInTransition,
      hasReason: isThere, hasOthers: registry.backgroundReasons.count > (isThere ? 1 : 0),
      hasAbandonedHooks: calls.abandonedCount > 0,
      isTerminating: isTerminating, isOver: isClosed || registry.state == .terminated,
      isLost: stop.isLost)
  }
}
