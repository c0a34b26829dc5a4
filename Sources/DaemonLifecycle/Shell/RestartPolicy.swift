// SPDX-License-Identifier: Apache-2.0

/// When a body that threw is run again, and how many failures are tolerated: a parameter of `addForeground`.
public struct RestartPolicy: Sendable {
  let initialDelay: Duration
  let maximumDelay: Duration
  let maximumFailures: Int?
  let period: Duration

  /// A policy whose delays double, each shortened at random by up to a half, so that many instances do not restart at
  /// the same time.
  ///
  /// With the defaults, a body that fails at once each time goes on for 46 s to 93 s: it outlives a database's restart.
  ///
  /// - Parameters:
  ///   - initial: The delay before the first restart. Default 100 ms.
  ///   - maximum: The longest delay. Default 10 s.
  ///   - maximumFailures: How many failures within `period` are tolerated; the next one is thrown. Default 15; `nil`: any
  ///     number.
  ///   - period: The time in which failures are counted together. After that time without a failure, all are forgotten.
  ///     Default 300 s.
  public static func backoff(
    initial: Duration = .milliseconds(100), maximum: Duration = .seconds(10),
    maximumFailures: Int? = 15,
    within period: Duration = .seconds(300)
  ) -> RestartPolicy {
    RestartPolicy(
      initialDelay: initial, maximumDelay: maximum, maximumFailures: maximumFailures, period: period
    )
  }
}

/// The recent failures of one body, and what follows from the next one.
struct RestartHistory: Sendable {
  let policy: RestartPolicy
  /// The failures that count: at the last one, none was older than the period.
  private var failures: [LifecycleClock.Instant] = []
  /// What the operator is told of them.
  var note: String?

  init(_ policy: RestartPolicy) { self.policy = policy }

  /// The last one; `nil` where nothing has failed since the body last ran without a failure for the whole period.
  var last: LifecycleClock.Instant? { failures.last }

  /// The body has run without a failure for the whole period. Returns false where another failure has come just now.
  mutating func forget(upTo last: LifecycleClock.Instant) -> Bool {
    guard failures.last == last else { return false }
    (failures, note) = ([], nil)
    return true
  }

  /// Records a failure. Returns the delay before the next run and the number of that restart within the period; `nil`
  /// when no restart is left.
  ///
  /// - Parameter share: The part of the delay to wait for, from 0.5 to 1.
  mutating func failed(
    at now: LifecycleClock.Instant, share: Double
  ) -> (delay: Duration, number: Int)? {
    failures.removeAll { $0.duration(to: now) >= policy.period }
    failures.append(now)
    if failures.count > policy.maximumFailures ?? .max { return nil }
    // More would change neither the delay nor what is left.
    if failures.count > max(1000, policy.maximumFailures ?? 0) { failures.removeFirst() }
    var delay = max(.zero, policy.initialDelay)
    for _ in 1..<failures.count where delay < policy.maximumDelay { delay = delay * 2 }
    return (min(delay, policy.maximumDelay) * share, failures.count)
  }
}
