// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The body of `run`.
enum Body: Sendable {
  case none
  /// It runs; once a termination has paused everybody it is cancelled, at the time named.
  case running(cancelled: MonotonicTime?)
  /// With what it threw, if it threw.
  case ended(Failure?)

  var failure: Failure? { if case .ended(let failure) = self { failure } else { nil } }

  /// True when it runs, and had not been cancelled before.
  mutating func cancel(at now: MonotonicTime) -> Bool {
    guard case .running(nil) = self else { return false }
    self = .running(cancelled: now)
    return true
  }
}
