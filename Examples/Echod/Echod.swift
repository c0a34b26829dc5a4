// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd

/// Answers each line with the line: an example of a server whose restart no client notices. No connection is dropped, and
/// no byte lost or doubled.
///
///     swift run echod
///     printf 'one\ntwo\n' | nc -N 127.0.0.1 7777
///
/// Under systemd (`systemd/echod.socket`, `systemd/echod.service`) the socket is a socket unit's, so that nobody is
/// refused while no daemon runs, and each connection is kept in systemd's store once it has lasted a second.
///
/// | what happens | to the connections |
/// | --- | --- |
/// | `systemctl restart` | they are handed over with their half lines and unsent answers: not a byte is lost |
/// | `systemctl reload` | nothing; answers begin with the new prefix |
/// | `systemctl stop` | every line that has come is answered, then each gets its end |
/// | SIGUSR1 | nobody is accepted; each is answered, and ends once a quarter of a second was silent and no half line waits; who is not over after 10 s is cut off, and the report says so; SIGUSR2 goes on |
/// | SIGTERM by hand | what has come is answered, then as a restart: `Restart=always` makes it one |
/// | SIGKILL, a crash | those kept stay, but what was read and not answered, and answers not sent, are lost |
///
/// For load balancers: while it drains, the listening socket stays, so a check that only connects sees no difference. Let
/// it send a line and wait for the answer, or look for `--ready-file`, which goes before the first connection ends. An end
/// after the last answer means that lines without one were not handled, and may be sent again elsewhere.
///
/// From top to bottom: `Conversation` is what is said on one connection, `Connection` puts a socket to it, `Loop` serves
/// all of them, an actor on a thread of its own (`LoopThread`), with `DescriptorLimit` for crowds and `Keeping` for what
/// systemd keeps, `Loop+Handover` and `Restored` are the two sides of a restart, and `EchoService` is where the lifecycle
/// is used.
///
/// It drains in its hooks, which know why they are called and how long they may take. Connections that are child tasks
/// drain in `foreground(draining:)`: see Clockd.
@main struct Echod {
  static func main() async {
    signal(SIGPIPE, SIG_IGN)
    do {
      let options = try Options(parsing: Array(CommandLine.arguments.dropFirst()))
      if options.wantsHelp {
        print(Options.usage, terminator: "")
        exit(0)
      }
      if options.wantsVersion {
        print("echod \(LifecycleSubject.packageVersion)")
        exit(0)
      }
      if options.checksOnly {
        print("echod: \(try check(options))")
        exit(0)
      }
      try await serve(options)
    } catch {
      say("\(error)", .error)
      exit(error is UsageError ? 64 : error is SettingsError ? 78 : 71)
    }
  }

  /// Throws what the launch would refuse to start with.
  private static func check(_ options: Options) throws(SettingsError) -> String {
    _ = try Settings.load(options.configFile)
    guard let file = options.configFile else {
      return "the options are valid; there is no configuration file (--config)"
    }
    return "\(VisibleText.line(file)) is valid"
  }

  private static func serve(_ options: Options) async throws -> Never {
    var configuration = LifecycleConfiguration()
    configuration.readinessFile = options.readyFile
    let lifecycle = LifecycleSubject(configuration: configuration)
    _ = EchoService(lifecycle, options)
    exit(try await lifecycle.run().code)
  }
}
