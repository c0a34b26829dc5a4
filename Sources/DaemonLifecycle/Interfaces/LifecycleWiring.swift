// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd

/// The result of connecting a configuration's interfaces as a subject starts; the core has it afterwards.
package struct LifecycleWiring {
  package let environment: ServiceEnvironment
  /// The connected interfaces.
  package private(set) var interfaces: LifecycleInterfaces = []
  /// Whether the process has a service manager, and this subject communicates with it.
  package let isSupervised: Bool
  /// Logs a problem at any time. It takes no lock of the core's, so a sink may call it under its own.
  package let warn: @Sendable (String) -> Void
  /// Takes an input at any time, from any thread.
  let take: @Sendable (SourceInput) -> Void

  /// A part that can't be opened still receives the facts.
  package var parts: [any LifecyclePart] = []
  /// Each is called with the core before the launch, for a part that depends on where the daemon is.
  package var followers: [@Sendable (AnyObject) -> Void] = []
  package var busInputs: [BusInput] = []
  /// The time within which a check of health must succeed: the shortest that is required; `nil` for none.
  private(set) var watchdogPeriod: Duration?
  /// The mistakes in the environment and the configuration, logged at the start.
  private(set) var problems: [String] = []

  init(
    _ environment: ServiceEnvironment, isSupervised: Bool,
    warn: @escaping @Sendable (String) -> Void,
    take: @escaping @Sendable (SourceInput) -> Void = { _ in }
  ) {
    (self.environment, self.isSupervised) = (environment, isSupervised)
    (self.warn, self.take) = (warn, take)
  }

  /// Connects interfaces, and then the buses and the watchdog, which several of them share.
  mutating func connect(_ interfaces: LifecycleInterfaces) {
    self.interfaces = interfaces
    for interface in interfaces.all { interface.connect(&self) }
    connectBuses()
    if let watchdogPeriod { parts.append(WatchdogSource(period: watchdogPeriod)) }
  }

  /// Adds a problem, unless it is known.
  package mutating func note(_ problem: String) {
    if !problems.contains(problem) { problems.append(problem) }
  }

  /// Has the health checked, within the given period or the shortest possible one.
  ///
  /// - Parameter name: The name of the period, for a warning.
  package mutating func checkHealth(within period: Duration, _ name: String) {
    let shortest = WatchdogSource.shortestInterval * 2
    if period < shortest {
      note(
        "\(name) is \(period), and the shortest that this process supports is \(shortest): make it longer."
      )
    }
    watchdogPeriod = min(watchdogPeriod ?? .seconds(Int64.max), max(period, shortest))
  }
}
