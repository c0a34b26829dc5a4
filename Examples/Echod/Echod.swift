// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleFiles
import DaemonSystemd

/// Answers each line with the line: an example of a server whose restart no client notices. No connection is dropped, and
/// no byte lost or doubled.
///
///     swift run echod
///     printf 'one\ntwo\n' | nc -N 127.0.0.1 7777
///
/// Under systemd (`systemd/echod.socket`, `systemd/echod.service`) the socket is a socket unit's, so that no client is
/// refused while no daemon runs, and each connection is kept in systemd's store once it has lasted a second.
///
/// | what happens | to the connections |
/// | --- | --- |
/// | `systemctl restart` | they are handed over with their half lines and unsent answers: no byte is lost |
/// | `systemctl reload` | nothing; answers begin with the new prefix |
/// | `systemctl stop` | every line that has arrived is answered, then each connection ends |
/// | SIGUSR1 | no new ones are accepted; each ends when its lines are answered and it was silent for a quarter of a second; after 10 s the rest is cut off, and the report names it; SIGUSR2 goes on. A restart or a crash does not end the pause; those that have not ended by then go on |
/// | SIGTERM by hand | lines that have arrived are answered, then as a restart: `Restart=always` makes it one |
/// | SIGKILL, a crash | those that systemd keeps stay, but lines that were read and not answered, and answers not sent, are lost |
///
/// For load balancers: while it drains, the listening socket stays, so a check that only connects sees no difference.
/// Let the check send a line and wait for the answer, or test for `--ready-file`, which is removed before the first
/// connection ends. When a connection ends, lines without an answer were not handled, and may be sent again elsewhere.
///
/// From top to bottom: `Conversation` is one connection without its socket, `Connection` adds the socket, `Loop` serves
/// all of them, an actor on a thread of its own (`LoopThread`), with `DescriptorLimit` for crowds and `Keeping` for what
/// systemd keeps, `Loop+Handover` and `Restored` are the two sides of a restart, and `EchoService` is where the lifecycle
/// is used.
///
/// It drains in its hooks, which know why they are called and how long they may take. Connections that are child tasks
/// drain in `addForeground(draining:)`: see Clockd.
@main struct Echod {
  static func main() {
    do {
      let options = try Options(parsing: Array(CommandLine.arguments.dropFirst()))
      if options.wantsHelp {
        print(Options.usage, terminator: "")
        exit(0)
      }
      if options.wantsVersion {
        print("echod 1.0.0")
        exit(0)
      }
      if options.checksOnly {
        print("echod: \(try check(options))")
        exit(0)
      }
      serve(options)
    } catch {
      say("\(error)", .error)
      exit((error as? any ExitStatusError)?.exitStatus ?? 71)
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

  private static func serve(_ options: Options) -> Never {
    var configuration = LifecycleConfiguration()
    if let file = options.readyFile { configuration.interfaces.append(.readinessFile(file)) }
    LifecycleSubject.runAndExit(configuration: configuration) { lifecycle in
      _ = EchoService(lifecycle, options)
      // Later, so that the pause is kept before the connections drain.
      _ = try KeptPause(lifecycle)
    }
  }
}
