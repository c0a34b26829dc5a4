// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleCodable
import DaemonLifecycleFiles
import DaemonLifecycleState
import DaemonSystemd

/// Polls a file, counts the polls, and goes on counting where it stopped: an example of a daemon that
/// works for itself. Paused, resumed, reloaded or restarted at any moment, it loses no number and repeats none.
///
///     swift build --product pollerd; .build/debug/pollerd --state /tmp/pollerd & sleep 3
///     kill -USR1 %1; sleep 1; kill -USR2 %1; sleep 1; kill -HUP %1; sleep 1; kill %1
///
/// This file reads the command line and wires the parts; `Poller` is where the lifecycle is used.
@main struct Pollerd {
  static func main() {
    Descriptor.openMissingStandardOnes()
    // A file at its size limit is no reason to die: writing to it fails, and `Console` goes on without.
    signal(SIGXFSZ, SIG_IGN)
    // Process 1 of a container gets every orphan, such as what a probe's time-out has left. It starts no children of
    // its own, whose status this would lose, so the kernel may reap them.
    if getpid() == 1 { signal(SIGCHLD, SIG_IGN) }
    do {
      let options = try Options(parsing: Array(CommandLine.arguments.dropFirst()))
      if options.wantsHelp {
        try Descriptor.standardOutput.writeAll(Array(Options.usage.utf8))
        exit(0)
      }
      if options.wantsVersion {
        try Descriptor.standardOutput.writeAll(
          Array("pollerd 1.0.0\n".utf8))
        exit(0)
      }
      if options.checksOnly {
        try Descriptor.standardOutput.writeAll(Array("pollerd: \(try check(options))\n".utf8))
        exit(0)
      }
      let configuration = try options.lifecycle(.current)
      configuration.exitIfProbed(by: CommandLine.arguments)
      serve(options, configuration)
    } catch {
      log("\(error)", .error)
      exit((error as? any ExitStatusError)?.exitStatus ?? 71)
    }
  }

  /// Throws what `serve` would refuse to start with.
  private static func check(_ options: Options) throws -> String {
    _ = try options.lifecycle(.current)
    _ = try Configuration(file: options.configFile, overrides: options.settings).load()
    guard let file = options.configFile else {
      return "the options are valid; there is no configuration file (--config)"
    }
    return "\(VisibleText.line(file)) is valid"
  }

  private static func serve(_ options: Options, _ configuration: LifecycleConfiguration) -> Never {
    LifecycleSubject.runAndExit(configuration: configuration) { lifecycle in
      _ = try KeptPause(lifecycle)
      let configuration = Configuration(file: options.configFile, overrides: options.settings)
      let settings = try configuration.load()
      let store = try PollStore(
        directory: options.stateDirectory(ServiceEnvironment.current.variables))
      let state = try store.loadOrSetAside { log($0, .warning) } ?? PollState()
      let poller = Poller(
        lifecycle: lifecycle, state: state, store: store, settings: settings,
        configuration: configuration, console: Console(.standardOutput, clock: lifecycle.clock))
      lifecycle.addForeground(name: "polling") { try await poller.poll() }
    }
  }

  private static func log(_ sentence: String, _ priority: JournalPriority) {
    Journal.writeLine(sentence, priority)
  }
}
