// SPDX-License-Identifier: Apache-2.0
extension LifecycleConfiguration {
  /// Returns the configuration with zero in place of negative durations, which would lengthen other limits, and a sentence
  /// about each.
  func withoutNegatives() -> (configuration: LifecycleConfiguration, problems: [String]) {
    var (result, problems) = (self, [String]())
    func raise(_ time: inout Duration, _ name: String) {
      if time >= .zero { return }
      problems.append("\(name) is negative (\(time)): it counts as zero.")
      time = .zero
    }
    func raise(_ time: inout Duration?, _ name: String) {
      guard var known = time else { return }
      raise(&known, name)
      time = known
    }
    raise(&result.hookTimeout, "hookTimeout")
    raise(&result.cancellationGrace, "cancellationGrace")
    raise(&result.stopTimeout, "stopTimeout")
    raise(&result.saveReserve, "saveReserve")
    raise(&result.exitGrace, "exitGrace")
    raise(&result.escalationDelay, "escalationDelay")
    raise(&result.stopDelay, "stopDelay")
    return (result, problems)
  }
}
