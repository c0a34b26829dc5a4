// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// When a body that has thrown is run again, and when that is given up: what
/// ``LifecycleObservable/foreground(restarting:name:phase:file:line:_:)`` takes.
public struct RestartPolicy: Sendable, Hashable {
  /// The delay before the first restart.
  public var initialDelay: Duration
  /// The longest delay: each is twice the one before, up to this.
  public var maximumDelay: Duration
  /// How many failures within `period` are survived; the next one is the daemon's.
  public var intensity: Int
  /// The time in which failures count together. When it has passed without one, all is forgotten.
  public var period: Duration

  /// Delays that double, each shortened at random by up to a half so that many instances do not come back together.
  ///
  /// - Parameters:
  ///   - initial: The delay before the first restart. Default 100 ms.
  ///   - maximum: The longest delay. Default 30 s.
  ///   - intensity: How many failures within `period` are survived. Default 5.
  ///   - period: The time in which failures count together. Default 60 s.
  public static func backoff(
    initial: Duration = .milliseconds(100), maximum: Duration = .seconds(30), intensity: Int = 5,
    within period: Duration = .seconds(60)
  ) -> RestartPolicy {
    RestartPolicy(
      initialDelay: initial, maximumDelay: maximum, intensity: intensity, period: period)
  }
}

/// The failures of one body so far, and what follows from the next.
struct RestartHistory: Sendable {
  let policy: RestartPolicy
  /// Those that count: none is older than the period.
  private var failures: [LifecycleClock.Instant] = []

  init(_ policy: RestartPolicy) { self.policy = policy }

  /// It is well again when it has run for so long: the past is forgotten.
  func isForgotten(at now: LifecycleClock.Instant) -> Bool {
    failures.last.map { $0.duration(to: now) >= policy.period } ?? true
  }

  /// The delay before the next run, and which restart that is within the period; `nil`: it is given up.
  ///
  /// - Parameter share: How much of the delay is waited for, from a half to one.
  mutating func failed(
    at now: LifecycleClock.Instant, share: Double
  ) -> (delay: Duration, number: Int)? {
    failures.removeAll { $0.duration(to: now) >= policy.period }
    failures.append(now)
    guard failures.count <= policy.intensity else { return nil }
    var delay = max(.zero, policy.initialDelay)
    for _ in 1..<failures.count where delay < policy.maximumDelay { delay = delay * 2 }
    return (min(delay, policy.maximumDelay) * share, failures.count)
  }
}
