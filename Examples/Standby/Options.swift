// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle

/// The command line's options.
struct Options: Equatable {
  var wantsHelp = false
  var wantsVersion = false
  /// Whether to check the options and end.
  var checksOnly = false
  var name = "\(getpid())"
  /// The unit that decides which instance works.
  var unit: String?
  /// The command of sh(1) that decides which instance works.
  var elector: String?
  /// The key of the token in the JSON that it prints.
  var tokenKey: String?
  /// How long the work and the save may take when the lease was lost.
  var handover = Duration.seconds(3)
  var interval = Duration.seconds(1)
  var ledger = ""

  static let usage = """
    Usage: standby [--name NAME] [--unit UNIT | --elect COMMAND [--token-key KEY] [--handover SECONDS]]
                   [--interval SECONDS] [--check-config] LEDGER
           standby --version

    Two of them share the file LEDGER: the active one appends a numbered line each second, and the other follows.

      --name NAME         what its lines are signed with (default: the process's number)
      --unit UNIT         it is active while this unit of systemd's is, such as standby-a.target
      --elect COMMAND     it is active from the first line that COMMAND prints until COMMAND ends; the line is a
                          number that grows, and LEDGER refuses a writer with a lower one
      --token-key KEY     the line is JSON, and the number is its KEY: create_revision, of etcdctl
      --handover SECONDS  how long it may take to stop writing when COMMAND has ended (default: 3)
      --interval SECONDS  how often the active one writes, and both read (default: 1)
      --check-config      check the options, and end; there is no configuration file
      --version           print the version
      --help              print this

    Signals: SIGUSR2 makes it active, unless UNIT or COMMAND keeps it passive; SIGUSR1 passive. SIGTERM and SIGINT end it.

    Exit status: 0 all well, 1 LEDGER can't be read or written, 64 bad arguments, 70 the lease was lost and it did not stop
    in time, 71 LEDGER can't be opened.

    """

  init() {}

  init(parsing arguments: [String]) throws(UsageError) {
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "--help", "-h":
        wantsHelp = true
        return
      case "--version":
        wantsVersion = true
        return
      case "--check-config": checksOnly = true
      case "--name":
        name = try Self.value(of: argument, &rest)
        if name.contains(where: \.isNewline) { throw UsageError("--name must be on one line") }
      case "--unit": unit = try Self.value(of: argument, &rest)
      case "--elect": elector = try Self.value(of: argument, &rest)
      case "--token-key": tokenKey = try Self.value(of: argument, &rest)
      case "--handover": handover = try Self.seconds(of: argument, &rest)
      case "--interval": interval = try Self.seconds(of: argument, &rest)
      case _ where argument.hasPrefix("-"): throw UsageError("There is no option \(argument)")
      case _ where ledger.isEmpty: ledger = argument
      default: throw UsageError("Only one LEDGER is allowed, and \"\(argument)\" is another")
      }
    }
    if ledger.isEmpty { throw UsageError("LEDGER is missing") }
    if unit != nil, elector != nil {
      throw UsageError("Either --unit or --elect decides which instance works")
    }
  }

  private static func seconds(
    of name: String, _ rest: inout ArraySlice<String>
  ) throws(UsageError) -> Duration {
    let text = try value(of: name, &rest)
    guard let seconds = Double(text), seconds >= 0.001, seconds <= 3600 else {
      throw UsageError("\(name) \"\(text)\" is not a number of seconds from 0.001 to 3600")
    }
    return .seconds(seconds)
  }

  private static func value(
    of name: String, _ rest: inout ArraySlice<String>
  ) throws(UsageError) -> String {
    guard let value = rest.popFirst(), !value.isEmpty else {
      throw UsageError("\(name) needs a value")
    }
    return value
  }
}

/// The command line can't be understood.
struct UsageError: ExitStatusError, CustomStringConvertible {
  var exitStatus: Int32 { 64 }  // EX_USAGE
  private let problem: String
  init(_ problem: String) { self.problem = problem }
  var description: String { problem + " (see standby --help)." }
}
