/// Why something happens: what a notification, a report and an exit carry.
public struct LifecycleCause: Sendable, CustomStringConvertible {
  /// Who or what asked for it.
  public enum Origin: Sendable {
    /// A signal, with the sender's process and real user (0 and 0 when the kernel sent it, as a terminal
    /// does for Ctrl-C; process -1 when it is outside of this process's pid namespace, as who stops a
    /// container is) and how many deliveries were taken together.
    case signal(UnixSignal, pid: Int32, uid: UInt32, coalesced: Int)
    /// `start()` or `run`.
    case launch
    /// A call of a method of the subject.
    case api
    /// systemd or logind, over the bus: what it said.
    case bus(String)
    /// The kernel reports that a resource is short.
    case pressure(DidReceivePressure.Resource)
    /// A tick of the watchdog.
    case watchdog
    /// The body of `run` returned.
    case bodyReturned
    /// The body of `run` threw.
    case bodyFailed(any Error)
    /// The task that called `run` was cancelled.
    case callerCancelled
    /// A hook of the launch failed, and the configuration says that the daemon ends then.
    case launchFailed
    /// An observer was added late, or could not be told before: it hears what the others have heard.
    case lateObserver
    /// What a test, or a notification that was adopted from elsewhere, says.
    case other(String)
  }

  /// Who or what asked for it.
  public let origin: Origin
  /// What the error of `bodyFailed` says of itself, put into words where it was thrown.
  package let errorText: String?

  /// A cause made by hand, for tests.
  public init(_ origin: Origin) {
    self.origin = origin
    errorText = nil
  }

  /// One that was written down: the error's text is not asked for again.
  package init(_ origin: Origin, errorText: String?) {
    self.origin = origin
    self.errorText = errorText
  }

  /// The body of `run` threw.
  init(_ failure: LifecycleCore.Failure) {
    origin = .bodyFailed(failure.error)
    errorText = failure.text
  }

  /// The signal, when that was the cause.
  // Inlined where a hook compares it, it makes Swift 6.3.1 crash in a release build (CopyPropagation).
  @inline(never)
  public var signal: UnixSignal? {
    if case .signal(let signal, _, _, _) = origin { signal } else { nil }
  }

  private static func sender(_ pid: Int32, _ uid: UInt32) -> String {
    if pid == 0, uid == 0 { return "the kernel" }
    return pid < 0 ? "outside of the container, uid \(uid)" : "pid \(pid) uid \(uid)"
  }

  /// For a log line: `SIGUSR1 from pid 4242 uid 0`.
  public var description: String {
    switch origin {
    case .signal(let signal, let pid, let uid, let coalesced):
      "\(signal) from \(Self.sender(pid, uid))" + (coalesced > 1 ? " (\(coalesced) times)" : "")
    case .launch: "launch"
    case .api: "a call"
    case .bus(let fact): fact
    case .pressure(let resource): "\(resource) pressure"
    case .watchdog: "the watchdog"
    case .bodyReturned: "the body returned"
    case .bodyFailed(let error): "the body threw \(errorText ?? "\(error)")"
    case .callerCancelled: "the caller was cancelled"
    case .launchFailed: "the launch failed"
    case .lateObserver: "a late observer"
    case .other(let text): text
    }
  }
}
