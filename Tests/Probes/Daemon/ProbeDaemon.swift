// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Glibc

/// A daemon for the process tests: the first argument names what it is up to.
@main struct ProbeDaemon {
  static func main() async throws {
    let arguments = Array(CommandLine.arguments.dropFirst())
    guard let name = arguments.first, let scenario = scenarios[name] else {
      say("scenarios: \(scenarios.keys.sorted())")
      exit(64)
    }
    try await scenario(Array(arguments.dropFirst()))
  }

  static let scenarios: [String: @Sendable ([String]) async throws -> Void] = [
    "log": log, "blocked": blocked, "blocked-main": blockedMain, "blockers": blockers,
    "leaving": leaving,
    "hang": hang, "full-stdout": fullStdout, "ownership": ownership,
    "body": body,
    "launch-fails": launchFails, "fork": forkChild, "two-subjects": twoSubjects, "churn": churn,
    "spawn": spawnFromHook, "late-launch": slowLaunch, "stop": stopListening,
    "exit-grace": exitGrace, "cancel": cancelCaller, "late-signal": lateSignal,
    "broken-stderr": brokenStderr, "storm": storm, "send": sendStorm, "memory": memory,
    "state": keepState, "robbed": robbed, "late-uses": lateUses, "one-lost": oneLost,
    "poll-refused": pollRefused, "unstarted": unstarted, "threadless": threadless,
    "escalation": escalation, "hosted": hosted, "print": prints, "own-log": ownLog, "thief": thief,
    "works": works, "in-a-task": inATask, "recording": recording,
  ]
}

/// One write(2) a line, so that lines of several threads do not mix.
func say(_ line: String) {
  var text = line + "\n"
  text.withUTF8 { _ = write(1, $0.baseAddress, $0.count) }
}

/// Says every notification that it hears.
final class Logger: LaunchObserver, ForegroundObserver, BackgroundObserver, SaveObserver,
  ReloadObserver, TerminationObserver
{
  let name: String
  init(_ name: String = "") { self.name = name.isEmpty ? "" : name + " " }

  func didFinishLaunching(_ notification: DidFinishLaunching) { say("\(name)launch") }
  func willEnterForeground(_ notification: WillEnterForeground) {
    say("\(name)foreground: \(notification.cause)")
  }
  func didEnterBackground(_ notification: DidEnterBackground) {
    say("\(name)background: \(notification.cause)")
  }
  func shouldSaveState(_ notification: ShouldSaveState) {
    say("\(name)save: \(notification.cause)")
  }
  func shouldReload(_ notification: ShouldReload) { say("\(name)reload: \(notification.cause)") }
  func willTerminate(_ notification: WillTerminate) {
    say("\(name)terminate: \(notification.cause)")
  }
}

/// A subject with an observer that says all notifications.
func loggedSubject(
  _ configuration: LifecycleConfiguration = LifecycleConfiguration()
) -> LifecycleSubject {
  let lifecycle = LifecycleSubject(configuration: configuration)
  lifecycle.addObserver(Logger())
  return lifecycle
}

extension LifecycleSubject {
  /// Runs to the end, for which the tokens last, and says how it went.
  nonisolated(nonsending) func runToTheEnd(_ tokens: LifecycleToken...) async throws -> Never {
    let result = try await run()
    withExtendedLifetime(tokens) {}
    finish(result)
  }

  /// Runs until `body`, which is a task, has returned.
  nonisolated(nonsending) func untilReturned(
    _ body: @escaping @Sendable () async throws -> Void
  ) async throws -> LifecycleExit {
    addTask(name: "body") { [unowned self] in
      try await body()
      terminate(because: "the body returned")
    }
    return try await run()
  }

  /// As `runToTheEnd`, with a word when the launch is over.
  nonisolated(nonsending) func start(
    saying word: String, _ tokens: LifecycleToken...
  ) async throws -> Never {
    try await start()
    say(word)
    let result = await waitUntilTerminated()
    withExtendedLifetime(tokens) {}
    finish(result)
  }
}

/// Ends with the exit's code, saying how it went.
func finish(_ result: LifecycleExit) -> Never {
  for entry in result.report.entries { say("entry \(entry)") }
  say("exit \(result.exitStatus)")
  exit(result.exitStatus)
}
