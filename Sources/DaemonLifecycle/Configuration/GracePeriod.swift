// SPDX-License-Identifier: Apache-2.0
public import DaemonSystemd

extension LifecycleConfiguration {
  /// Takes the stop budget from a variable that holds the grace period of the container: the time between its
  /// SIGTERM and its SIGKILL, which a process can't see by itself.
  ///
  ///     var configuration = LifecycleConfiguration()
  ///     try configuration.takeStopTimeout(fromEnvironment: "TERMINATION_GRACE_PERIOD_SECONDS")
  ///
  /// In a pod's manifest the variable repeats `terminationGracePeriodSeconds`, since the downward API does not
  /// offer that field; for `docker stop` it repeats `--stop-timeout`.
  ///
  /// The budget is what the variable says, less `preStop`, less a margin of a tenth, at most 2 s: the grace period
  /// is counted by somebody else, who began before us. A ``stopTimeout`` that is there already counts where it is
  /// less, and so does systemd's `TimeoutStopSec=`.
  ///
  /// - Parameters:
  ///   - name: The variable. Its value is a whole number of seconds: `30`.
  ///   - preStop: How long the container's `preStop` hook takes at most: it comes before SIGTERM, out of the same
  ///     grace period.
  ///   - environment: By default this process's, as it was when it was first looked at.
  /// - Returns: The new stop budget; `nil`, with nothing changed, where the variable is not set.
  /// - Throws: ``LifecycleError/invalidGracePeriod(_:_:reason:)`` when it says anything else, nothing at all, no
  ///   time, more than a year, or no more than `preStop`; nothing is changed then.
  @discardableResult
  public mutating func takeStopTimeout(
    fromEnvironment name: String, preStop: Duration = .zero,
    in environment: ServiceEnvironment = .current
  ) throws(LifecycleError) -> Duration? {
    guard let text = environment[name] else { return nil }
    func invalid(_ reason: String) -> LifecycleError {
      .invalidGracePeriod(name, text, reason: reason)
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

  /// What a stop may take of a grace period: somebody else counts that, and began before us.
  static func stopTimeout(within gracePeriod: Duration) -> Duration {
    gracePeriod - min(.seconds(2), gracePeriod / 10)
  }
}
