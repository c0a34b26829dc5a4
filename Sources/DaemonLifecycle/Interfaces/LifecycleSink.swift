// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd

/// An output that receives each fact of the lifecycle, for systemd, the journal or a probe.
///
/// It is called in the order of the facts, by one thread at a time, without a lock of the core, and possibly on the
/// listening thread: it must not block, and must not run user code.
protocol LifecycleSink: Retrying {
  /// Whether it is a service manager, which receives progress and extends time-outs. Default: false.
  var isServiceManager: Bool { get }
  /// Receives a fact. Returns when to call `tryAgain`; `nil` when that is known already, or nothing is left to be tried.
  @discardableResult func receive(_ fact: LifecycleFact) -> MonotonicTime?
}

/// An output that may fail for a while, for lack of a descriptor or of room, and is tried again.
package protocol Retrying: AnyObject, Sendable {
  /// Tries again, on the listening thread. Returns the time of the next attempt; `nil` when nothing is left to be tried.
  func tryAgain() -> MonotonicTime?
}

extension LifecycleSink {
  var isServiceManager: Bool { false }
  func tryAgain() -> MonotonicTime? { nil }
}
