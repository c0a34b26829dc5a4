// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleLease
import DaemonSystemd

/// A hot standby: two instances of one daemon, of which one works, and the other knows all that it knows and
/// takes over within a moment. Whichever of them is stopped or killed, no number of the ledger is lost or written twice.
/// The background is where a standby lives, and the foreground is the work.
///
///     swift build
///     .build/debug/standby --name a /tmp/ledger & .build/debug/standby --name b /tmp/ledger &
///     sleep 1; kill -USR2 %1; sleep 3; kill %1; kill -USR2 %2; sleep 1; kill %2
///     cat /tmp/ledger
///
/// SIGUSR2 makes an instance active, SIGUSR1 passive again. Under systemd, with `--unit`, it is active exactly
/// while that unit is, and a crash makes the other one active: see `systemd/README.md`. On several machines, with `--elect`,
/// a command decides: see the guide *Running on several machines*.
///
/// This file launches the daemon in the background; `Replica` is what is done where; `Ledger` is the file.
@main struct Standby {
  static func main() async {
    do {
      let options = try Options(parsing: Array(CommandLine.arguments.dropFirst()))
      if options.wantsHelp {
        print(Options.usage, terminator: "")
        exit(0)
      }
      if options.wantsVersion {
        print("standby 1.0.0")
        exit(0)
      }
      if options.checksOnly {
        print("standby: the options are valid; there is no configuration file")
        exit(0)
      }
      try await serve(options)
    } catch {
      Journal.writeLine("\(error)", .error)
      exit((error as? any ExitStatusError)?.exitStatus ?? 71)
    }
  }

  private static func serve(_ options: Options) async throws -> Never {
    var configuration = LifecycleConfiguration()
    if let unit = options.unit { configuration.interfaces.append(.pausing(whileInactive: unit)) }
    let lease = options.elector.map {
      Lease(
        "ledger", command: ["sh", "-c", $0], tokenKey: options.tokenKey, handover: options.handover)
    }
    if let lease { configuration.interfaces.append(.pausing(without: lease)) }
    let lifecycle = LifecycleSubject(configuration: configuration)
    // Given before the launch, a reason launches the daemon in the background. This one is taken back when
    // systemd says that the unit is active, or by SIGUSR2; until then, and without a bus, it stands by. A lease has one.
    if lease == nil { lifecycle.pause(for: options.unit.map { BackgroundReason($0) } ?? .operator) }

    let replica = try Replica(name: options.name, ledger: options.ledger, lease: lease) {
      Journal.writeLine($0)
    }
    lifecycle.addObserver(replica)
    replica.work(every: options.interval, in: lifecycle)
    let result = try await lifecycle.run()
    if let error = result.error { Journal.writeLine("\(error)", .error) }
    exit(result.exitStatus)
  }
}
