// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd

/// The times of repeated attempts: after 10 ms at first, and then at intervals that double, until one succeeds.
package struct Backoff: Sendable {
  private static let first = Duration.milliseconds(10)
  private let longest: Duration
  private var delay = first

  package init(longest: Duration) { self.longest = longest }

  /// The time of the next attempt, after one that has failed.
  package var nextAttempt: MonotonicTime { .now().advanced(by: delay) }

  /// Notes that an attempt begins at its time. Attempts in between do not call this.
  package mutating func grow() { delay = min(delay * 2, longest) }

  /// Notes that nothing is left to be tried.
  package mutating func reset() { delay = Self.first }
}
