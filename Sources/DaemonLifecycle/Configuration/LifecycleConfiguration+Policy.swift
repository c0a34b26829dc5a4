// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

extension LifecycleMachine.Policy {
  /// The times of a configuration, with zero in place of negative ones, which would lengthen other limits.
  ///
  /// - Parameter platform: It has the stop timeout, where neither the configuration nor a service manager has one.
  init(
    configuration: LifecycleConfiguration, platform: HostingPlatform? = nil,
    hasServiceManager: Bool = false, watchdogPeriod: Duration? = nil
  ) {
    func raised(_ time: Duration?) -> Duration? { time.map { max(.zero, $0) } }
    hookTimeout = max(.zero, configuration.hookTimeout)
    cancellationGrace = max(.zero, configuration.cancellationGrace)
    stopTimeout = raised(configuration.stopTimeout) ?? platform?.stopTimeout
    saveReserve = max(.zero, configuration.saveReserve)
    exitGrace = raised(configuration.exitGrace)
    escalationDelay = raised(configuration.escalationDelay)
    stopDelay = max(.zero, configuration.stopDelay)
    hookNanoseconds = hookTimeout.saturatedNanoseconds
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
