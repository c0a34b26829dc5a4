// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd

/// A part that connects a daemon with the outside. It turns one kind of event into inputs, as the sources of signals
/// and of systemd's bus do, or receives the facts of the lifecycle, as systemd and the journal do, or shows whether the
/// daemon is ready.
///
/// `open` runs on the thread that starts the subject, before its set-up begins; `read` and `wake` on the listening
/// thread; `receive` in the order of the facts, on one thread at a time; `close` on any. None may run user code, and
/// none may wait but the bus's first `wake`, which loads libsystemd.
///
/// A method that returns a time has the part woken then, or earlier. `nil` leaves the time that is set, if any.
package protocol LifecyclePart: AnyObject, Sendable {
  // MARK: Inputs

  /// The descriptors that the listening thread polls, from `open` to `close`. A descriptor with an error is read once
  /// more and no longer polled: its part may close it.
  var descriptors: [PolledDescriptor] { get }
  /// Whether a descriptor is one of them. Default: searches `descriptors`.
  func polls(_ descriptor: Int32) -> Bool
  /// Notes that other code has closed descriptors, so that the daemon ends. Returns whether this part continues, as
  /// signals do. Default: true.
  func loseDescriptors() -> Bool
  func open() throws -> MonotonicTime?
  /// Notes that another thread listens from now on. Called on it.
  func listenerChanged()
  /// Reads a descriptor that is ready.
  func read(_ ready: PolledDescriptor, _ take: (SourceInput) -> Void) -> MonotonicTime?
  /// Does what is due, at the requested time or later. It may be called early.
  func wake(_ take: (SourceInput) -> Void) -> MonotonicTime?
  /// The process is ended at once, without `close`, perhaps under the core's lock; these facts have not been sent. Default:
  /// nothing.
  func processEnds(_ unsent: [LifecycleFact])
  /// Restores everything that `open` changed, and returns the inputs that arrived before. Further calls have no effect.
  @discardableResult func close() -> [SourceInput]

  // MARK: Facts

  /// Whether it is a service manager, which receives progress and extends time-outs. Default: false.
  var isServiceManager: Bool { get }
  @discardableResult func receive(_ fact: LifecycleFact) -> MonotonicTime?

  // MARK: Readiness

  /// Whether it shows readiness. Default: false.
  var showsReadiness: Bool { get }
  /// Shows the readiness, unless a newer change was shown. Not sent as a fact, which may arrive later: readiness must be
  /// withdrawn before the first hook. Each critical section numbers its own, and the thread that leaves it calls this first.
  @discardableResult func show(_ isReady: Bool, number: UInt64) -> MonotonicTime?
  /// Restores what others have changed; called with each tick of the watchdog.
  func check() -> MonotonicTime?
}

extension LifecyclePart {
  package var descriptors: [PolledDescriptor] { [] }
  package func polls(_ descriptor: Int32) -> Bool {
    descriptors.contains { $0.number == descriptor }
  }
  package func loseDescriptors() -> Bool { true }
  package func open() throws -> MonotonicTime? { nil }
  package func listenerChanged() {}
  package func processEnds(_: [LifecycleFact]) {}
  package func read(_: PolledDescriptor, _: (SourceInput) -> Void) -> MonotonicTime? { nil }
  package func wake(_: (SourceInput) -> Void) -> MonotonicTime? { nil }
  @discardableResult package func close() -> [SourceInput] { [] }
  package var isServiceManager: Bool { false }
  @discardableResult package func receive(_: LifecycleFact) -> MonotonicTime? { nil }
  package var showsReadiness: Bool { false }
  @discardableResult package func show(_: Bool, number _: UInt64) -> MonotonicTime? { nil }
  package func check() -> MonotonicTime? { nil }
}
