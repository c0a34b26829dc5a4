// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd

/// The owner of the daemon's position: the core of a subject. Its functions may be called on any thread, but not under a
/// lock that a part takes as it receives a fact.
package protocol PositionKeeper: AnyObject, Sendable {
  var now: MonotonicTime { get }
  func position(for reason: BackgroundReason) -> LifecyclePosition
  /// Has the daemon handle a request of the part's, before this returns.
  func request(_ request: LifecycleRequest, because cause: String)
  /// Adds hooks that are one observer.
  func add(
    closures: [Hook], owner: any AnyObject & Sendable, name: String, phase: LifecyclePhase)
  /// Does an action on the listening thread at a time, or earlier.
  func schedule(_ action: Sleeper, at deadline: MonotonicTime)
  func remove(_ action: Sleeper)
  /// Ends the process at once.
  func exit(_ status: Int32)
}
