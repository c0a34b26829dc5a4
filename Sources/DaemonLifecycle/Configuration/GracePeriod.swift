// SPDX-License-Identifier: Apache-2.0
public import DaemonSystemd

extension LifecycleConfiguration {
  /// Sets ``stopTimeout`` from an environment variable that holds the container's grace period: the time between
  /// SIGTERM and SIGKILL, which a process can't find out otherwise.
  ///
  /// ```swift
  /// var configuration = LifecycleConfiguration()
  /// try configuration.setStopTimeout(
  ///   fromEnvironment: "TERMINATION_GRACE_PERIOD_SECONDS")
  /// ```
  ///
  /// In a pod's manifest the variable repeats `terminationGracePeriodSeconds`; for `docker stop` it repeats
  /// `--stop-timeout`. The timeout is its value minus `preStop` minus a margin of a tenth, at most 2 s, since the platform
  /// starts counting before the signal arrives. A lower ``stopTimeout``, or `TimeoutStopSec=` of systemd, applies instead.
  ///
  /// - Parameters:
  ///   - name: The name of the variable, whose value is a whole number of seconds: `30`.
  ///   - preStop: How long the container's `preStop` hook, which runs before SIGTERM, takes at most. Default 0.
  ///   - environment: The environment to read. Default: this process's.
  /// - Returns: The new timeout; `nil`, with nothing changed, when the variable is not set.
  /// - Throws: ``LifecycleError/invalidGracePeriod(name:value:reason:)`` when the value is empty, not a whole number, zero,
  ///   more than a year, or not more than `preStop`; nothing is changed then.
  @discardableResult
  public mutating func setStopTimeout(
    fromEnvironment name: String, preStop: Duration = .zero,
    in environment: ServiceEnvironment = .current
  ) throws(LifecycleError) -> Duration? {
    guard let text = environment[name] else { return nil }
    func invalid(_ reason: String) -> LifecycleError {
      .invalidGracePeriod(name: name, value: text, reason: reason)
    }
    guard let seconds = decimal(text.utf8, as: Int64.self) else {
      throw invalid("not a whole number of seconds")
    }
    guard seconds > 0 else { throw invalid("no time at all: SIGKILL would come with SIGTERM") }
    guard seconds <= 366 * 24 * 3600 else { throw invalid("more than a year") }
    let ours = Duration.seconds(seconds) - max(.zero, preStop)
    guard ours > .zero else {
      throw invalid("no more than the \(preStop.forReading) that the preStop hook takes of it")
    }
    let budget = Self.stopTimeout(within: ours)
    stopTimeout = min(stopTimeout ?? budget, budget)
    return stopTimeout
  }

  /// The stop timeout that fits a grace period, which the platform starts counting before the signal arrives.
  static func stopTimeout(within gracePeriod: Duration) -> Duration {
    gracePeriod - min(.seconds(2), gracePeriod / 10)
  }
}
