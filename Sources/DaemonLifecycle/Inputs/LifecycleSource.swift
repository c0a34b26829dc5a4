// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// A source, which turns one kind of external event into inputs of the core: signals, systemd's bus, pressure.
///
/// `open` runs on the thread that starts the subject, before `start()` returns; `read` on the listening
/// thread whenever one of the descriptors is ready; `close` on any thread. None may run code of the user's
/// or wait.
protocol LifecycleSource: AnyObject, Sendable {
  /// The descriptors that the listening thread polls, from `open` to `close`. A source may close one of them earlier,
  /// and then omits it: the poll drops it.
  var descriptors: [PolledDescriptor] { get }
  /// Whether a descriptor is one of them. Default: searches `descriptors`.
  func polls(_ descriptor: Int32) -> Bool
  func open() throws(LifecycleError)
  /// Notes that another thread listens from now on. Called on it.
  func listenerChanged()
  func read(_ ready: PolledDescriptor) -> [LifecycleInput]
  /// Reads inputs one after another, for a source that gains by not making a list.
  func read(_ ready: PolledDescriptor, _ receive: (LifecycleInput) -> Void)
  /// Restores everything that `open` changed, and returns the inputs that arrived before. Further calls have no effect.
  @discardableResult func close() -> [LifecycleInput]
}

extension LifecycleSource {
  func read(_ ready: PolledDescriptor, _ receive: (LifecycleInput) -> Void) {
    for input in read(ready) { receive(input) }
  }
  func listenerChanged() {}
  func polls(_ descriptor: Int32) -> Bool { descriptors.contains { $0.number == descriptor } }
}
