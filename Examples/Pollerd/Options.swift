// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleFiles
import DaemonSystemd

/// The command line's options.
struct Options: Equatable {
  var wantsHelp = false
  var wantsVersion = false
  /// Whether to check the configuration and end.
  var checksOnly = false
  /// The settings, which take precedence over the configuration file.
  var settings = PartialSettings()
  var configFile: String?
  var givenStateDirectory: String?
  var readyFile: String?
  var readyDescriptor: Int32?
  var aliveFile: String?
  var stopDelay = Duration.zero

  static let usage = """
    Usage: pollerd [--interval SECONDS] [--source FILE] [--config FILE] [--state DIR]
                   [--ready-file FILE] [--ready-fd NUMBER] [--alive-file FILE] [--drain SECONDS]
                   [--check-config] [--probe ready|alive] [--version]

    Reads FILE every SECONDS and prints its first line, numbered; goes on counting after a restart.

      --interval SECONDS  time between two polls, from 0.001, such as 0.5 (default: 1)
      --source FILE       what to poll; may be a FIFO or a device (default: /proc/loadavg)
      --config FILE       a file of settings, read at start and on SIGHUP
      --state DIR         where the count is kept (default: the first directory of $STATE_DIRECTORY,
                          else $XDG_STATE_HOME/pollerd, else ~/.local/state/pollerd)
      --ready-file FILE   a file that is there exactly while it polls, for a container's readiness probe
      --ready-fd NUMBER   a descriptor to write a newline to when it polls, for s6, OpenRC and Finit
                          (default: $NOTIFY_FD, if there is one)
      --alive-file FILE   a file that is touched every 11 s while it is well, for a liveness probe
      --drain SECONDS     how long it goes on polling when a stop was requested, without that file (default: 0)
      --check-config      check the options and the configuration file, and end: status 0, or 78 and the line
                          that is wrong
      --probe KIND        "ready" or "alive": check that file, and end: status 0 or 1, and a sentence
      --version           print the version
      --help              print this

    The configuration file has a line for each setting; a # at the start of a line or after a space
    begins a comment. What is not in the file has its default:

      # polled twice a second
      interval = 0.5
      source = /proc/uptime

    The command line wins over the file, at start and on SIGHUP. A bad file is an error at start; on
    SIGHUP the old settings stay.

    Under systemd it reports readiness, its status and its health.

    In a container, $TERMINATION_GRACE_PERIOD_SECONDS says how long a stop may take until SIGKILL.

    Signals: SIGUSR1 pauses, SIGUSR2 resumes, SIGHUP saves and reloads, SIGTERM and SIGINT save and end.

    Exit status: 0 all well, 64 bad arguments, 71 the system refused, 73 no place for the state,
    or another pollerd has it, 78 bad configuration file or grace period; 70 or 124 when the state could not be saved at the end.

    """
}

extension Options {
  init(parsing arguments: [String]) throws(UsageError) {
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      // `--name=value` is `--name value`.
      let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = String(parts[0])
      let attached = parts.count > 1 ? String(parts[1]) : nil
      switch name {
      case "--help", "-h", "--version", "--check-config":
        guard attached == nil else { throw UsageError("\(name) takes no value") }
        switch name {
        case "--check-config": checksOnly = true
        case "--version":
          wantsVersion = true
          return
        default:
          wantsHelp = true
          return
        }
      case "--interval", "--source":
        let value = try Self.value(of: name, attached, &rest)
        do { try settings.set(String(name.dropFirst(2)), to: value) } catch {
          throw UsageError("\(error)")
        }
      case "--config": configFile = try Self.value(of: name, attached, &rest)
      case "--ready-file": readyFile = try Self.value(of: name, attached, &rest)
      case "--ready-fd":
        readyDescriptor = try Self.descriptor(Self.value(of: name, attached, &rest), name)
      // `exitIfProbed` has its value.
      case "--probe": _ = try Self.value(of: name, attached, &rest)
      case "--alive-file": aliveFile = try Self.value(of: name, attached, &rest)
      case "--drain": stopDelay = try Self.seconds(Self.value(of: name, attached, &rest), name)
      case "--state": givenStateDirectory = try Self.value(of: name, attached, &rest)
      case _ where name.hasPrefix("-"): throw UsageError("There is no option \(name)")
      default: throw UsageError("\"\(argument)\" belongs to no option")
      }
    }
  }

  private static func seconds(_ text: String, _ name: String) throws(UsageError) -> Duration {
    guard let seconds = Double(text), seconds >= 0, seconds <= 3600 else {
      throw UsageError("\(name) \"\(text)\" is not a number of seconds from 0 to 3600")
    }
    return .seconds(seconds)
  }

  private static func descriptor(_ text: String, _ name: String) throws(UsageError) -> Int32 {
    guard let number = Int32(text), number > 2 else {
      throw UsageError("\(name) \"\(text)\" is not the number of a descriptor above 2")
    }
    return number
  }

  private static func value(
    of name: String, _ attached: String?, _ rest: inout ArraySlice<String>
  ) throws(UsageError) -> String {
    if attached == nil, let next = rest.first, !next.hasPrefix("--") {
      rest.removeFirst()
      if !next.isEmpty { return next }
    }
    guard let attached, !attached.isEmpty else { throw UsageError("\(name) needs a value") }
    return attached
  }

  /// The lifecycle's configuration, with the container's grace period.
  func lifecycle(_ environment: ServiceEnvironment) throws(LifecycleError) -> LifecycleConfiguration
  {
    var configuration = LifecycleConfiguration(stopDelay: stopDelay)
    if let readyFile { configuration.interfaces.append(.readinessFile(readyFile)) }
    if let readyDescriptor {
      configuration.interfaces.append(.readinessDescriptor(readyDescriptor))
    }
    if let aliveFile { configuration.interfaces.append(.livenessFile(aliveFile)) }
    try configuration.setStopTimeout(
      fromEnvironment: "TERMINATION_GRACE_PERIOD_SECONDS", in: environment)
    return configuration
  }

  /// The directory of the state: the option's, else systemd's or that of the XDG convention.
  func stateDirectory(_ environment: [String: String]) throws(UsageError) -> String {
    if let givenStateDirectory { return givenStateDirectory }
    if let first = environment["STATE_DIRECTORY"]?.split(separator: ":").first {
      return String(first)
    }
    // By the convention a relative path is ignored.
    if let base = environment["XDG_STATE_HOME"], base.hasPrefix("/") { return base + "/pollerd" }
    if let home = environment["HOME"], home.hasPrefix("/") { return home + "/.local/state/pollerd" }
    throw UsageError("There is no $HOME to keep the state in: say where with --state")
  }
}

/// The command line can't be understood.
struct UsageError: ExitStatusError, CustomStringConvertible {
  var exitStatus: Int32 { 64 }  // EX_USAGE
  private let problem: String
  init(_ problem: String) { self.problem = problem }
  var description: String { problem + " (see pollerd --help)." }
}
