// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// The interfaces of a subject, with what is wrong in its configuration and environment.
extension LifecycleWiring {
  /// Connects the interfaces of a configuration; what must be there before it is needed is opened. The log receives what
  /// others warn of, and all facts.
  init(
    _ configuration: LifecycleConfiguration, isSupervised: Bool, platform: HostingPlatform? = nil,
    log: LifecycleLog,
    take: @escaping @Sendable (SourceInput) -> Void = { _ in }
  ) {
    self.init(
      configuration.environment, isSupervised: isSupervised, warn: { log.warn($0) }, take: take)
    if configuration.usesService { noteEnvironment() }
    connect(configuration.interfaces)
    parts.append(log)
    for problem in configuration.negatives { note(problem) }
    if let problem = HostingPlatform.shellProblem() { note(problem) }
    if !configuration.interfaces.contains(.signals()) {
      note(
        "No signals are handled, not even SIGTERM: the list of interfaces has none. Begin with .standard or .plain."
      )
    }
    let signals = configuration.signals
    if !signals.signals.isEmpty, signals[.sigterm] == nil {
      note(
        "SIGTERM is not in the signal map: it ends the daemon at once, and nothing is saved. Begin with SignalMap.standard."
      )
    }
    if let problem = StopBudget.drainProblem(policy(of: configuration, on: platform)) {
      note(problem)
    }
  }

  func policy(
    of configuration: LifecycleConfiguration, on platform: HostingPlatform?
  ) -> LifecycleMachine.Policy {
    LifecycleMachine.Policy(
      configuration: configuration, platform: platform,
      hasServiceManager: parts.contains { $0.isServiceManager }, watchdogPeriod: watchdogPeriod)
  }

  private mutating func noteEnvironment() {
    if environment.isWithheld {
      note(
        "The environment is not read, because this program has privileges that its caller may lack (setuid, setgid or"
          + " file capabilities). If systemd has started it, systemd is not notified: give the unit User= and"
          + " AmbientCapabilities= instead.")
    }
    if isSupervised {
      for problem in environment.problems { note(problem.description) }
      noteOtherProcess()
    } else if environment.isSupervised {
      note(
        "Another LifecycleSubject of this process already notifies systemd; this one won't."
          + " Give it LifecycleConfiguration(interfaces: .plain).")
    } else {
      // Some inits other than systemd use the name for something else.
      do throws(SystemdError) { _ = try environment.notifySocket } catch {
        note("\(error) It is ignored, and no service manager is notified.")
      }
    }
  }

  private mutating func noteOtherProcess() {
    guard let pid = environment["SYSTEMD_EXEC_PID"],
      (try? environment.isMainProcess) == false
    else { return }
    if environment.processID == 1 {
      // systemd 257 and 258 say the number of a process that has forked it (systemd#38137), and often do not know the
      // daemon for their child, whose end they would wait for. Its notifications arrive.
      note(
        "systemd before version 259 does not know a daemon with PrivatePIDs= well: its watchdog is off, and a stop may be"
          + " SIGKILL alone, without a save. Leave out PrivatePIDs=.")
      return
    }
    note(
      "systemd has started process \(pid), and this is \(environment.processID): with"
        + " NotifyAccess=main systemd ignores its notifications. Start it with exec, or set NotifyAccess=all."
    )
  }
}
