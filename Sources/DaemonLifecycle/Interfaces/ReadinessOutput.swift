// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd

/// An output that shows whether the daemon is ready.
///
/// Not a sink: sinks may run later, and readiness must be withdrawn before the first hook. Each critical section
/// of the core numbers its readiness, and the thread that leaves it calls `set` before it starts hooks; an older number
/// then has no effect.
package protocol ReadinessOutput: Retrying {
  /// Removes what a process that was killed has left: called before the launch, so that problems are logged at the start.
  func prepare()
  /// Sets the readiness, unless a newer change has been set. Returns when to try again what has failed.
  @discardableResult func set(_ isReady: Bool, number: UInt64) -> MonotonicTime?
  /// Mends what others have changed; called with each tick of the watchdog. Returns when to try again what has failed.
  func check() -> MonotonicTime?
}
