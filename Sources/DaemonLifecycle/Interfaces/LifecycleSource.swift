// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// A source, which turns one kind of external event into inputs of the machine: signals, systemd's bus, pressure, the
/// watchdog's ticks.
///
/// `open` runs on the thread that starts the subject, before its set-up begins; `read` and `timePassed` on the
/// listening thread; `close` on any thread. None may run code of the user's or wait, but for the bus's
/// first `process`, which loads libsystemd.
protocol LifecycleSource: AnyObject, Sendable {
  /// The descriptors that the listening thread polls, from `open` to `close`. One with an error is polled no more once
  /// that was read: its source may close it. Default: none.
  var descriptors: [PolledDescriptor] { get }
  /// The time at which `timePassed` should be called, checked after `open`, `read` and `timePassed`. `nil`, the
  /// default, keeps the time that was requested before, if any.
  var deadline: MonotonicTime? { get }
  /// Whether a descriptor is one of them. Default: searches `descriptors`.
  func polls(_ descriptor: Int32) -> Bool
  /// Whether it works on when the descriptors are lost, as signals do. Default: false.
  var outlivesLoss: Bool { get }
  func open() throws
  /// Notes that another thread listens from now on. Called on it.
  func listenerChanged()
  /// Reads a descriptor that is ready. Default: there is none.
  func read(_ ready: PolledDescriptor, _ take: (SourceInput) -> Void)
  /// Called when the deadline is reached, or later than that; it may be early if the deadline has changed.
  func timePassed() -> [SourceInput]
  /// Restores everything that `open` changed, and returns the inputs that arrived before. Further calls have no effect.
  @discardableResult func close() -> [SourceInput]
}

extension LifecycleSource {
  var descriptors: [PolledDescriptor] { [] }
  var deadline: MonotonicTime? { nil }
  var outlivesLoss: Bool { false }
  func polls(_ descriptor: Int32) -> Bool { descriptors.contains { $0.number == descriptor } }
  func listenerChanged() {}
  func read(_: PolledDescriptor, _: (SourceInput) -> Void) {}
  func timePassed() -> [SourceInput] { [] }
}
