// SPDX-License-Identifier: Apache-2.0
/// Receives each fact of the lifecycle, for systemd, the journal or a probe.
///
/// Called in the order of the facts, by one thread at a time, under no lock of the core's, and possibly on
/// the listening thread: it must not wait, and runs no code of the user's.
protocol LifecycleSink: AnyObject, Sendable {
  /// It is a service manager: it wants to know of progress, and allows for more time where that is asked for.
  var isServiceManager: Bool { get }
  func receive(_ fact: LifecycleFact)
}
