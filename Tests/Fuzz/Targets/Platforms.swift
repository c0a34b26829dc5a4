// SPDX-License-Identifier: Apache-2.0
@testable import DaemonLifecycle
@testable import DaemonSystemd

extension FuzzTarget {
  /// Which markers of platforms are set, whether it is in a container, the length of the `preStop` hook, and the
  /// variable with the grace period.
  static let platforms = FuzzTarget(name: "platforms") { input in
    var variables: [String: String] = [:]
    for platform in HostingPlatform.all {
      if input.bool() { variables[platform.marker] = input.bool() ? "x" : "" }
    }
    let sign = input.bool() ? "process 1 is tini" : nil
    let preStop = Duration.seconds(Int64(input.number(Int16.self)))
    let text = input.allText()
    variables["GRACE"] = text
    let environment = ServiceEnvironment(variables, processID: 1)
    let platform = HostingPlatform.current(environment, containerSign: sign)
    let isMarked = HostingPlatform.all.contains { variables[$0.marker] == "x" }
    require(
      (platform != nil) == (isMarked || sign != nil), "\(platform as Any) in \(variables)")
    if let platform { requireSentence(platform.sentence) }
    checkGracePeriod(environment, text, preStop, platform)
  }

  private static func stopTimeout(
    of configuration: LifecycleConfiguration, on platform: HostingPlatform?
  ) -> Duration? {
    LifecycleMachine.Policy(configuration: configuration, platform: platform).stopTimeout
  }

  private static func checkGracePeriod(
    _ environment: ServiceEnvironment, _ text: String, _ preStop: Duration,
    _ platform: HostingPlatform?
  ) {
    var configuration = LifecycleConfiguration()
    configuration.environment = environment
    if let platform, !platform.marker.isEmpty {
      require(configuration.platform?.name == platform.name, "another platform is found")
    }
    require(
      stopTimeout(of: configuration, on: platform) == platform?.stopTimeout,
      "the platform does not count")
    do throws(LifecycleError) {
      let none = try configuration.setStopTimeout(fromEnvironment: "NONE", in: environment)
      require(none == nil, "there is no such variable")
      let budget = try configuration.setStopTimeout(
        fromEnvironment: "GRACE", preStop: preStop, in: environment)
      let period = normalDigits(text.utf8).flatMap { Int64($0) }.map { Duration.seconds($0) }
      guard let budget, let period else { return require(false, "\(text) is a number") }
      let left = period - max(.zero, preStop)
      require(
        budget > .zero && budget < left && left - budget <= .seconds(2),
        "\(budget) of \(text) seconds")
      require(configuration.stopTimeout == budget, "it does not count")
      require(stopTimeout(of: configuration, on: platform) == budget, "the platform counts")
      require(configuration.platform == nil, "a platform is looked for")
      configuration.stopTimeout = .milliseconds(1)
      try configuration.setStopTimeout(
        fromEnvironment: "GRACE", preStop: preStop, in: environment)
      require(configuration.stopTimeout == .milliseconds(1), "the shorter one does not count")
    } catch {
      require(configuration.stopTimeout == nil, "it is refused and counts")
      requireSentence(error)
    }
  }
}
