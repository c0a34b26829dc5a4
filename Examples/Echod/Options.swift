// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle

/// The command line's options.
struct Options: Equatable {
  var wantsHelp = false
  var wantsVersion = false
  /// Whether to check the configuration and end.
  var checksOnly = false
  /// Where to listen when systemd has passed no socket.
  var listen = "127.0.0.1:7777"
  var configFile: String?
  /// The file that shows a probe whether new clients are accepted.
  var readyFile: String?

  static let usage = """
    Usage: echod [--listen ADDRESS] [--config FILE] [--ready-file FILE] [--check-config] [--version]

    Answers each line with the line. Sockets come from systemd, as "listener"; without them it listens itself.

      --listen ADDRESS  where, if systemd has passed no socket: 127.0.0.1:7777 (the default), [::1]:7777, port 0
                        for any, or the path of a Unix socket
      --config FILE     a file of settings, read at start and on SIGHUP:
                          prefix = you said:     what each answer begins with (default: nothing)
                          line-limit = 65536     how many bytes a line may have
      --ready-file FILE a file that is there exactly while it accepts clients, for a container's readiness probe
      --check-config    check the options and the configuration file, and end: status 0, or 78 and the line that is
                        wrong
      --version         print the version
      --help            print this

    Signals: SIGUSR1 drains (no new connections; the others end when they are idle), SIGUSR2 goes on, SIGHUP
    reads the settings again. SIGTERM: when systemd restarts the service, connections are handed to the next run with
    all that was half said; when it stops it, they are drained. A drain has 10 s; a connection that has not ended then is cut off.

    Exit status: 0 all well, 64 bad arguments, 70 it could not begin, or not every answer could be sent, 78 a bad
    configuration file with --check-config; 124 something was not over in time.

    """

  init() {}

  init(parsing arguments: [String]) throws(UsageError) {
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      // `--name=value` is `--name value`.
      let parts = argument.split(separator: "=", maxSplits: 1).map(String.init)
      let name = parts.first ?? ""
      func value() throws(UsageError) -> String {
        guard let value = parts.count > 1 ? parts[1] : rest.popFirst(), !value.isEmpty else {
          throw UsageError("\(name) needs a value")
        }
        return value
      }
      switch name {
      case "--help", "-h":
        wantsHelp = true
        return
      case "--version":
        wantsVersion = true
        return
      case "--check-config" where parts.count == 1: checksOnly = true
      case "--listen": listen = try value()
      case "--config": configFile = try value()
      case "--ready-file": readyFile = try value()
      default: throw UsageError("There is no option \"\(argument)\"")
      }
    }
  }
}

/// The command line can't be understood.
struct UsageError: ExitStatusError, CustomStringConvertible {
  var exitStatus: Int32 { 64 }  // EX_USAGE
  let description: String
  init(_ problem: String) { description = problem + " (see echod --help)." }
}
