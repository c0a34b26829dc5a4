// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The body of `run`.
enum Body: Sendable {
  case none
  /// It runs. Once a termination has paused all observers it is cancelled, at the given time.
  case running(cancelled: MonotonicTime?)
  /// It has ended, with the error that it threw, if any.
  case ended(Failure?)

  var failure: Failure? { if case .ended(let failure) = self { failure } else { nil } }

  /// Cancels it. Returns true when it was running and had not been cancelled before.
  mutating func cancel(at now: MonotonicTime) -> Bool {
    guard case .running(nil) = self else { return false }
    self = .running(cancelled: now)
    return true
  }
}
