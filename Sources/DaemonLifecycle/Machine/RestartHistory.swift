// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The recent failures of one body, and the delay after the next one.
struct RestartHistory: Sendable {
  private let policy: RestartPolicy
  /// The failures that count: at the last one, none was older than the period.
  private var failures: [MonotonicTime] = []

  /// A body that fails at once is not run again without a pause, whatever its policy.
  private static let shortest = Duration.milliseconds(10)

  init(_ policy: RestartPolicy) { self.policy = policy }

  /// Records a failure. Returns the delay before the next run and the number of that restart within the period; `nil`
  /// when no restart is left.
  ///
  /// - Parameter share: The part of the delay to wait for, from 0.5 to 1.
  mutating func failed(at now: MonotonicTime, share: Double) -> (delay: Duration, number: Int)? {
    failures.removeAll { $0.duration(to: now) >= policy.period }
    failures.append(now)
    if failures.count > policy.maximumFailures ?? .max { return nil }
    // More would change neither the delay nor the number of restarts that are left.
    if failures.count > max(1000, policy.maximumFailures ?? 0) { failures.removeFirst() }
    var delay = max(Self.shortest, policy.initialDelay)
    for _ in 1..<failures.count where delay < policy.maximumDelay { delay = delay * 2 }
    return (max(Self.shortest, min(delay, policy.maximumDelay) * share), failures.count)
  }
}
