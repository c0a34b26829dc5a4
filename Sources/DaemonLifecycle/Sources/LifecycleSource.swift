import Systemd

/// Turns one kind of outside fact into inputs of the core: signals are one, systemd's bus and pressure others.
///
/// `open` runs on the thread that starts the subject, before `start()` returns; `read` on the listening
/// thread whenever one of the descriptors is ready; `close` on any thread. None may run code of the user's
/// or wait.
protocol LifecycleSource: AnyObject, Sendable {
  /// What the listening thread polls, from `open` to `close`. A source may close one of them earlier, and
  /// leaves it out then: the kernel drops closed descriptors from the poll.
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
  /// Puts back everything that `open` changed, and returns what came before that; idempotent.
  @discardableResult func close() -> [LifecycleInput]
}

extension LifecycleSource {
  func listenerChanged() {}
  func reopen() throws(LifecycleError) { throw .unavailable("\(Self.self) can't open them again.") }
  func polls(_ descriptor: Int32) -> Bool { descriptors.contains { $0.number == descriptor } }
}

/// What a source reports to the core.
enum LifecycleInput: Sendable {
  /// A fact for the registry.
  case event(LifecycleEvent)
  /// How long the service manager waits for the end of a stop, before it kills.
  case stopTimeout(Duration)
  /// What the service manager is doing with the service that terminates; `nil`: nothing, or nobody could be asked.
  case unitJob(UnitJob?)
  /// How long logind waits for a delay lock.
  case sleepDelay(Duration)
  /// It is time for a ping; the process was stalled from outside for so long since the last one.
  case watchdogTick(stall: Duration)
  /// The service manager asks for a reload in a daemon whose signal map has none.
  case unmappedReload(LifecycleCause)
  /// Something that an operator should know, until it is taken back with `nil`.
  case remark(LifecycleRemark, String?)
  /// Something that an operator may want to find in the log.
  case complaint(String)
}

/// What a remark for the operator is about: each kind has at most one at a time.
enum LifecycleRemark: Int, Sendable, Comparable {
  /// The verdict on the last reload.
  case reload
  /// Hooks that did not complete.
  case problem
  /// Why the watchdog is not pinged.
  case health
  /// Suspending without a delay lock.
  case delayLock
  /// A shutdown without a delay lock.
  case shutdownLock
  /// A watched unit or session that can't be followed.
  case watched

  static func < (a: LifecycleRemark, b: LifecycleRemark) -> Bool { a.rawValue < b.rawValue }
}
