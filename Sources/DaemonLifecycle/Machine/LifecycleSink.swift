// SPDX-License-Identifier: Apache-2.0
/// An output that receives each fact of the lifecycle, for systemd, the journal or a probe.
///
/// It is called in the order of the facts, by one thread at a time, without a lock of the core, and possibly on the
/// listening thread: it must not block, and must not run user code.
protocol LifecycleSink: AnyObject, Sendable {
  /// Whether it is a service manager, which receives progress and extends time-outs.
  var isServiceManager: Bool { get }
  func receive(_ fact: LifecycleFact)
}
