/// Turns one kind of outside fact into events: signals are one, systemd's bus and pressure others.
///
/// `open` runs on the thread that starts the subject, before `start()` returns; `read` on the listening
/// thread whenever the descriptor is readable. Neither may run code of the user's or wait.
protocol LifecycleSource: AnyObject, Sendable {
  /// Readable when there is something to read; the listening thread polls it. Valid until `close`.
  var fileDescriptor: Int32 { get }
  func open() throws(LifecycleError)
  func read() -> [LifecycleEvent]
  /// Puts back everything that `open` changed, and returns what came before that; idempotent.
  @discardableResult func close() -> [LifecycleEvent]
}
