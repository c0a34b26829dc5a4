// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd

/// The interfaces of systemd, or of another supervisor, that a subject uses: decided once, from its configuration and
/// the environment.
struct ServiceIntegration {
  /// The outputs: each receives every fact that the machine publishes.
  private(set) var sinks: [any LifecycleSink] = []
  /// The inputs other than signals. One that can't be opened is left out.
  private(set) var sources: [any LifecycleSource] = []
  /// Shows probes whether the daemon is ready.
  let readiness: ReadinessMarker?
  private(set) var watchdogPeriod: Duration?
  /// Whether a service manager reloads by signal and waits for notifications.
  let isSupervised: Bool
  /// Whether one of the sources reads the systemd job that terminates the service.
  private(set) var asksForUnitJob = false

  /// The platform that runs the daemon, if the stop timeout is to be derived from it.
  let platform: HostingPlatform?

  /// The mistakes in the environment, logged at the start; the interfaces concerned are not used.
  private(set) var problems: [String] = []
  private let log: LifecycleLog

  /// Opens what must be there before it is needed, and takes over the descriptor for readiness.
  ///
  /// - Parameter isSupervised: False if the process has no service manager, or another subject communicates with it.
  init(_ configuration: LifecycleConfiguration, isSupervised: Bool) {
    let systemd = configuration.systemd
    log = LifecycleLog(configuration)
    self.isSupervised = isSupervised
    readiness = configuration.readinessFile.map { [log] in
      ReadinessMarker($0) { log.warn($0) }
    }
    platform =
      isSupervised || configuration.stopTimeout != nil
      ? nil
      : .current(
        systemd.environment, containerSign: HostingPlatform.containerSign(systemd.environment))
    if systemd.usesService, systemd.environment.isWithheld {
      problems.append(
        "the environment is not read, because this program has privileges that its caller may lack (setuid, setgid or"
          + " file capabilities). If systemd has started it, systemd is not notified: give the unit User= and"
          + " AmbientCapabilities= instead.")
    }
    if !isSupervised, systemd.isSupervised {
      problems.append(
        "another LifecycleSubject of this process already notifies systemd; this one won't."
          + " Give it SystemdConfiguration.off.")
    }
    if isSupervised { findProblems(systemd.environment) }
    if systemd.usesService { findUnusableNotifySocket(systemd.environment) }
    if isSupervised, systemd.notifies { addNotifications(systemd) }
    addPressure(systemd)
    addBuses(systemd)
    if let file = configuration.livenessFile { addLiveness(file, configuration.livenessPeriod) }
    sinks.append(log)
    addReadinessDescriptor(configuration)
    let (plain, negatives) = configuration.withoutNegatives()
    problems += negatives
    if let problem = StopBudget.drainProblem(plain.settled(on: platform)) {
      problems.append(problem)
    }
    if let alive = configuration.livenessFile, alive == configuration.readinessFile {
      problems.append(
        "\(alive) is the readiness file and the liveness file, so a daemon that is paused would look ready:"
          + " give each its own.")
    }
  }

  /// Logs a problem with an interface that is not used because of it.
  func warn(_ sentence: String) { log.warn(sentence) }

  /// Logs which platform was recognized.
  func notePlatform() { if let platform { log.info(platform.sentence) } }

  private mutating func findProblems(_ environment: ServiceEnvironment) {
    problems += environment.problems.map(\.description)
    guard let pid = environment["SYSTEMD_EXEC_PID"],
      (try? environment.isMainProcess) == false
    else { return }
    if environment.processID == 1 {
      // systemd 257 and 258 say the number of a process that has forked it. Its notifications arrive (systemd#38137).
      if environment["WATCHDOG_USEC"] != nil {
        problems.append(
          "The watchdog is off: WATCHDOG_PID= is a number of another pid namespace, as systemd sets it before version 259"
            + " with PrivatePIDs=. Leave out PrivatePIDs= or WatchdogSec=.")
      }
      return
    }
    problems.append(
      "systemd has started process \(pid), and this is \(environment.processID): with"
        + " NotifyAccess=main systemd ignores its notifications. Start it with exec, or set NotifyAccess=all."
    )
  }

  /// Reports a `NOTIFY_SOCKET` that is no address: some inits other than systemd use the name for something else.
  private mutating func findUnusableNotifySocket(_ environment: ServiceEnvironment) {
    if environment.isSupervised { return }
    do throws(SystemdError) { _ = try environment.notifySocket } catch {
      problems.append("\(error) It is ignored, and no service manager is notified.")
    }
  }

  private mutating func addReadinessDescriptor(_ configuration: LifecycleConfiguration) {
    do throws(SystemdError) {
      guard let descriptor = try configuration.takeReadinessDescriptor() else { return }
      sinks.append(ReadinessPipeSink(descriptor.release()) { [log] in log.warn($0) })
    } catch { note(error) }
  }

  private mutating func addNotifications(_ systemd: SystemdConfiguration) {
    // A malformed one is among the problems.
    guard let address = try? systemd.environment.notifySocket else { return }
    do throws(SystemdError) {
      sinks.append(NotifySink(try NotifySocket(address: address)) { [log] in log.warn($0) })
      addWatchdog(systemd)
    } catch { problems.append("\(error) No service manager is notified.") }
  }

  /// Adds the pressure that the service manager has set up, which may be none, else that of the own control group.
  private mutating func addPressure(_ systemd: SystemdConfiguration) {
    guard systemd.inputs.contains(.memoryPressure) else { return }
    do throws(SystemdError) {
      var watch = try systemd.environment.pressureWatch
      if watch == nil { watch = try .ownCgroup() }
      if let watch, !watch.isOff { sources.append(PressureSource(watch)) }
    } catch { note(error) }
  }

  /// Adds a problem, unless it is that of a malformed variable that was found before.
  private mutating func note(_ error: SystemdError) {
    if !problems.contains("\(error)") { problems.append("\(error)") }
  }

  /// Adds the inputs from the buses: the manager of a system service is on the system bus, that of a user service on
  /// the user's bus; logind is on the system bus.
  private mutating func addBuses(_ systemd: SystemdConfiguration) {
    let userManager = isSupervised ? systemd.environment.userManager : nil
    var (manager, login): ([SystemdConfiguration.Input], [SystemdConfiguration.Input]) = ([], [])
    for input in systemd.inputs where !manager.contains(input) && !login.contains(input) {
      switch input {
      case .stopTimeout, .unitJob: if isSupervised { manager.append(input) }
      case .unit: manager.append(input)
      case .sleep: if isSupervised { login.append(input) }
      case .memoryPressure: break
      }
    }
    asksForUnitJob = manager.contains(.unitJob)
    if let userManager {
      addBus(.user, manager)
      addBus(.system, login, manager.contains(.stopTimeout) ? userManager : nil)
    } else {
      addBus(.system, manager + login)
    }
  }

  private mutating func addBus(
    _ address: BusAddress, _ inputs: [SystemdConfiguration.Input], _ userManager: String? = nil
  ) {
    if inputs.isEmpty, userManager == nil { return }
    let source = BusSource(address, inputs, userManager: userManager)
    sources.append(source)
    sinks.append(source)
  }

  /// Adds the liveness file, which the watchdog's checks touch.
  private mutating func addLiveness(_ path: String, _ requested: Duration) {
    sinks.append(LivenessSink(path) { [log] in log.warn($0) })
    let period = bounded(min(watchdogPeriod ?? requested, requested), "The period of \(path)")
    if period == watchdogPeriod { return }
    sources.removeAll { $0 is WatchdogSource }
    sources.append(WatchdogSource(period: period))
    watchdogPeriod = period
  }

  private mutating func addWatchdog(_ systemd: SystemdConfiguration) {
    guard systemd.watchdog, let requested = try? systemd.environment.watchdogPeriod else { return }
    let period = bounded(requested, "The watchdog's period (WATCHDOG_USEC, WatchdogSec=)")
    watchdogPeriod = period
    sources.append(WatchdogSource(period: period))
  }

  /// Returns the period, or the shortest possible one with a warning.
  private mutating func bounded(_ period: Duration, _ name: String) -> Duration {
    let shortest = WatchdogSource.shortestInterval * 2
    if period >= shortest { return period }
    problems.append(
      "\(name) is \(period), and the shortest that this process supports is \(shortest): make it longer."
    )
    return shortest
  }
}
