// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

extension LifecycleMachine.Policy {
  /// The times of a configuration, bounded: negative ones would lengthen other limits.
  ///
  /// - Parameter platform: It has the stop timeout, where neither the configuration nor a service manager has one.
  init(
    configuration: LifecycleConfiguration, platform: HostingPlatform? = nil,
    hasServiceManager: Bool = false, watchdogPeriod: Duration? = nil
  ) {
    hookTimeout = configuration.hookTimeout.bounded
    cancellationGrace = configuration.cancellationGrace.bounded
    stopTimeout = configuration.stopTimeout?.bounded ?? platform?.stopTimeout
    saveReserve = configuration.saveReserve.bounded
    exitGrace = configuration.exitGrace?.bounded
    escalationDelay = configuration.escalationDelay?.bounded
    stopDelay = configuration.stopDelay.bounded
    hookNanoseconds = hookTimeout.saturatedNanoseconds
    graceNanoseconds = cancellationGrace.saturatedNanoseconds
    self.hasServiceManager = hasServiceManager
    self.watchdogPeriod = watchdogPeriod
  }
}

extension LifecycleConfiguration {
  /// A sentence about each time that is negative.
  var negatives: [String] {
    let times: [(String, Duration?)] = [
      ("hookTimeout", hookTimeout), ("cancellationGrace", cancellationGrace),
      ("stopTimeout", stopTimeout), ("saveReserve", saveReserve), ("exitGrace", exitGrace),
      ("escalationDelay", escalationDelay), ("stopDelay", stopDelay),
    ]
    return times.compactMap { name, time in
      guard let time, time < .zero else { return nil }
      return "\(name) is negative (\(time)): it counts as zero."
    }
  }
}
