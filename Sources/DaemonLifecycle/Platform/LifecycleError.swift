// SPDX-License-Identifier: Apache-2.0
import CLinux

/// An error that keeps a subject from starting, or one of its observers or interfaces from working.
/// Minor versions may add cases.
#if hasAttribute(nonexhaustive)
  @nonexhaustive
#endif
public enum LifecycleError: ExitStatusError, Sendable, Hashable, CustomStringConvertible {
  /// Another subject of this process handles the signal. Remove the signal from one of the two signal maps.
  case signalInUse(UnixSignal)
  /// The signal map contains a signal that can't be handled.
  case signalNotMappable(UnixSignal, reason: String)
  /// `run` was called twice; a subject can start only once.
  case alreadyStarted
  /// An observer of this type adopts no hook protocol.
  case noHook(String)
  /// `foreground { … }` was awaited in the set-up of `runAndExit` or `run`. It returns at the daemon's end, and the
  /// launch waits for the set-up. Write `addForeground { … }` there.
  case foregroundInSetUp
  /// The variable for the grace period of a stop is malformed.
  case invalidGracePeriod(name: String, value: String, reason: String)
  /// A system call failed.
  case system(purpose: String, errno: Int32)

  /// The exit status if it keeps the daemon from starting: 78 (EX_CONFIG) for a malformed grace period, else 71 (EX_OSERR).
  public var exitStatus: Int32 { if case .invalidGracePeriod = self { 78 } else { 71 } }

  /// The error in one sentence, for a log.
  public var description: String {
    switch self {
    case .signalInUse(let signal):
      "Another LifecycleSubject in this process already handles \(signal): "
        + "stop that one first, or take \(signal) out of one signal map."
    case .signalNotMappable(let signal, let reason):
      "\(signal) can't be in a signal map: \(reason)."
    case .alreadyStarted:
      "This LifecycleSubject has already been started: call run only once."
    case .noHook(let type):
      "\(type) has no hook, so it receives nothing: adopt the protocol of each hook that it implements, "
        + "LaunchObserver, ForegroundObserver, BackgroundObserver, SaveObserver, ReloadObserver, SleepObserver, "
        + "WakeUpObserver, PressureObserver, HealthObserver or TerminationObserver."
    case .foregroundInSetUp:
      "foreground { } returns when the daemon ends, and the daemon is launched when its set-up returns: "
        + "write addForeground { } in the set-up."
    case .invalidGracePeriod(let name, let value, let reason):
      "The grace period in $\(name), \"\(value)\", is \(reason): set it to the seconds between SIGTERM and SIGKILL."
    case .system(let purpose, let errno):
      "Could not \(purpose): \(String(cString: strerror(errno))) (errno \(errno))."
        + (errno == EMFILE ? " Raise LimitNOFILE=, or ulimit -n." : "")
    }
  }
}
