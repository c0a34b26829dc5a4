// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd

/// The times of repeated attempts: after 10 ms at first, and then at intervals that double, until one succeeds.
package struct Backoff: Sendable {
  private static let first = Duration.milliseconds(10)
  private let longest: Duration
  private var delay = first
  private var isScheduled = false

  package init(longest: Duration) { self.longest = longest }

  /// Returns the time of the next attempt, after one that has failed; `nil` when it is scheduled already.
  package mutating func nextAttempt() -> MonotonicTime? {
    if isScheduled { return nil }
    isScheduled = true
    defer { delay = min(delay * 2, longest) }
    return .now().advanced(by: delay)
  }

  /// Notes that the scheduled attempt begins.
  package mutating func begin() { isScheduled = false }

  /// Notes that nothing is left to be tried.
  package mutating func succeed() { delay = Self.first }
}
