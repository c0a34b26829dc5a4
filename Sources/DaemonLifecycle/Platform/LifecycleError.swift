// SPDX-License-Identifier: Apache-2.0
import CLinux

/// Why a subject could not start or run.
public enum LifecycleError: Error, Sendable, Hashable, CustomStringConvertible {
  /// Another subject in this process has claimed the signal; stop it first, or leave the signal out of
  /// one of the two signal maps.
  case signalInUse(UnixSignal)
  /// The signal map names a signal that must not be handled this way.
  case signalNotMappable(UnixSignal, reason: String)
  /// `start()` or `run` was called twice; a subject starts once.
  case alreadyStarted
  /// An observer has adopted no hook: its type.
  case noHook(String)
  /// The variable that should hold the grace period of a stop does not: its name, its value, and why not.
  case invalidGracePeriod(String, String, reason: String)
  /// Something that the daemon can do without is not to be had: a sentence.
  case unavailable(String)
  /// A system call failed: what it was for, and the `errno` value.
  case system(String, errno: Int32)

  public var description: String {
    switch self {
    case .signalInUse(let signal):
      "Another LifecycleSubject in this process already handles \(signal): "
        + "stop that one first, or take \(signal) out of one signal map."
    case .signalNotMappable(let signal, let reason):
      "\(signal) can't be in a signal map: \(reason)."
    case .alreadyStarted:
      "This LifecycleSubject was started before: call start() or run once."
    case .noHook(let type):
      "\(type) has no hook, so it receives nothing: adopt StateObserver, BackgroundObserver, or another of them."
    case .invalidGracePeriod(let name, let value, let reason):
      "The grace period in $\(name), \"\(value)\", is \(reason): set it to the seconds between SIGTERM and SIGKILL."
    case .unavailable(let sentence): sentence
    case .system(let purpose, let errno):
      "Could not \(purpose): \(String(cString: strerror(errno))) (errno \(errno))."
    }
  }
}
