// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// Turns one kind of outside fact into inputs of the core: signals are one, systemd's bus and pressure others.
///
/// `open` runs on the thread that starts the subject, before `start()` returns; `read` on the listening
/// thread whenever one of the descriptors is ready; `close` on any thread. None may run code of the user's
/// or wait.
protocol LifecycleSource: AnyObject, Sendable {
  /// What the listening thread polls, from `open` to `close`. A source may close one of them earlier, and
  /// leaves it out then: the poll drops what was closed.
  var descriptors: [PolledDescriptor] { get }
  /// Whether it is one of them; as `descriptors` says unless a source knows it sooner.
  func polls(_ descriptor: Int32) -> Bool
  func open() throws(LifecycleError)
  /// Other code of the process has closed one of the descriptors: opens others. The old numbers may be somebody else's
  /// by now, and are left alone. On the listening thread.
  func reopen() throws(LifecycleError)
  /// Another thread listens from now on. Called on it.
  func listenerChanged()
  func read(_ ready: PolledDescriptor) -> [LifecycleInput]
  /// The same, one after another, for a source that has something to gain by making no list.
  func read(_ ready: PolledDescriptor, _ receive: (LifecycleInput) -> Void)
  /// Puts back everything that `open` changed, and returns what came before that; idempotent.
  @discardableResult func close() -> [LifecycleInput]
}

extension LifecycleSource {
  func read(_ ready: PolledDescriptor, _ receive: (LifecycleInput) -> Void) {
    for input in read(ready) { receive(input) }
  }
  func listenerChanged() {}
  func reopen() throws(LifecycleError) { throw .unavailable("\(Self.self) can't open them again.") }
  func polls(_ descriptor: Int32) -> Bool { descriptors.contains { $0.number == descriptor } }
}
