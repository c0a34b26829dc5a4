// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// What the interfaces of a configuration are made into as a subject starts; the core has it afterwards.
struct LifecycleWiring {
  let environment: ServiceEnvironment
  /// Whether the process has a service manager, and this subject communicates with it.
  let isSupervised: Bool
  /// Logs a problem at any time. It takes no lock of the core's, so a sink may call it under its own.
  let warn: @Sendable (String) -> Void
  /// Takes an input at any time, from any thread.
  let take: @Sendable (SourceInput) -> Void

  /// One that can't be opened is left out.
  var sources: [any LifecycleSource] = []
  /// Each receives every fact that the machine publishes.
  var sinks: [any LifecycleSink] = []
  var readiness: [any ReadinessOutput] = []
  /// What is read and followed over the buses.
  var busInputs: [BusInput] = []
  /// The time within which a check of health must succeed: the shortest that is wanted; `nil` without any.
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

  /// Connects interfaces, and then what several of them share.
  mutating func connect(_ interfaces: [LifecycleInterface]) {
    for interface in interfaces.distinct { interface.connect(&self) }
    connectBuses()
    if let watchdogPeriod { sources.append(WatchdogSource(period: watchdogPeriod)) }
  }

  /// Adds a problem, unless it is known.
  mutating func note(_ problem: String) {
    if !problems.contains(problem) { problems.append(problem) }
  }

  /// Has the health checked, within the given period or the shortest possible one.
  ///
  /// - Parameter name: What has the period, for a warning.
  mutating func checkHealth(within period: Duration, _ name: String) {
    let shortest = WatchdogSource.shortestInterval * 2
    if period < shortest {
      note(
        "\(name) is \(period), and the shortest that this process supports is \(shortest): make it longer."
      )
    }
    watchdogPeriod = min(watchdogPeriod ?? .seconds(Int64.max), max(period, shortest))
  }
}

/// An output that shows whether the daemon is ready.
///
/// Not a sink: sinks may run later, and readiness must be withdrawn before the first hook. Each critical section
/// of the core numbers its readiness, and the thread that leaves it calls `set` before it starts hooks; an older number
/// then has no effect.
protocol ReadinessOutput: Retrying {
  /// Removes what a process that was killed has left: called before the launch, so that problems are logged at the start.
  func prepare()
  /// Sets the readiness, unless a newer change has been set. Returns when to try again what has failed.
  @discardableResult func set(_ isReady: Bool, number: UInt64) -> MonotonicTime?
  /// Mends what others have changed; called with each tick of the watchdog. Returns when to try again what has failed.
  func check() -> MonotonicTime?
}
