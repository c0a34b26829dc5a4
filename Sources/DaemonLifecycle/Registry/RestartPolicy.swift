// SPDX-License-Identifier: Apache-2.0

/// How soon, and how often, a body that threw is run again: a parameter of `addForeground` and `addTask`.
public struct RestartPolicy: Sendable {
  let initialDelay: Duration
  let maximumDelay: Duration
  let maximumFailures: Int?
  let period: Duration

  /// A policy with delays that double. Each is shortened at random by up to a half: many instances do not restart at
  /// the same time.
  ///
  /// With the defaults, a body that fails at once each time goes on for 46 s to 93 s: it outlives a database's restart.
  ///
  /// - Parameters:
  ///   - initialDelay: The delay before the first restart, of at least 10 ms. Default 100 ms.
  ///   - maximumDelay: The longest delay, of at least 10 ms. Default 10 s.
  ///   - maximumFailures: How many failures within `period` are tolerated; the next one is thrown. Default 15; `nil`: any
  ///     number.
  ///   - period: The time in which failures are counted together. After that time without a failure, all are forgotten.
  ///     Default 300 s.
  public static func backoff(
    initialDelay: Duration = .milliseconds(100), maximumDelay: Duration = .seconds(10),
    maximumFailures: Int? = 15, within period: Duration = .seconds(300)
  ) -> RestartPolicy {
    RestartPolicy(
      initialDelay: initialDelay, maximumDelay: maximumDelay, maximumFailures: maximumFailures,
      period: period)
  }
}
