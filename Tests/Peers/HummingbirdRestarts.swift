// SPDX-License-Identifier: Apache-2.0
// The guide's Hummingbird server with a listening socket that is kept for it, in a process of its own under 8 clients,
// which is paused, resumed, reloaded and restarted again and again: every request is answered.
import DaemonLifecycle
import DaemonLifecycleTesting
import Given
import Glibc
import Logging

@testable import Recipes

@main struct HummingbirdRestarts {
  static let isLong = getenv("LONG_TESTS") != nil
  static let cycles = isLong ? 1000 : 30
  static let answersBetween = isLong ? 250 : 20

  static func main() async throws {
    if CommandLine.arguments.count > 1 {
      let end = try await LifecycleSubject.run { lifecycle in
        try addServerOfKeptSocket(
          to: lifecycle, Logger(label: "http") { _ in SwiftLogNoOpLogHandler() })
      }
      exit(end.exitStatus)
    }
    alarm(isLong ? 6000 : 50)  // should something hang
    let listener = Listener()
    let manager = try FakeServiceManager()
    let clients = Clients(8, port: listener.port)
    var failures: [String] = []
    for cycle in 0..<cycles {
      let server = start(listener, manager)
      _ = try await manager.next(containing: "READY=1")
      await clients.untilAnswered(answersBetween)
      manager.willRequestReload()
      kill(server, SIGHUP)
      _ = try await manager.next(containing: "READY=1")
      await clients.untilAnswered(answersBetween)
      kill(server, SIGUSR1)
      _ = try await manager.next { $0["STATUS"]?.hasPrefix("background") ?? false }
      kill(server, SIGUSR2)
      _ = try await manager.next { $0["STATUS"]?.hasPrefix("foreground") ?? false }
      await clients.untilAnswered(2 * answersBetween)
      kill(server, SIGTERM)
      var status: Int32 = 0
      waitpid(server, &status, 0)
      if status != 0 { failures.append("the server ended with \(status) in cycle \(cycle)") }
      manager.willRestart()
      if isLong, cycle % 50 == 0 { print(cycle, clients.current) }
    }
    // What the clients have sent since then is answered, too.
    let server = start(listener, manager)
    let counts = clients.stop()
    kill(server, SIGTERM)
    print("\(cycles) cycles: \(counts)")
    for failure in failures + manager.violations { print(failure) }
    let isGood = counts.cut + counts.lost + counts.refused == 0 && failures.isEmpty
    exit(isGood && manager.violations.isEmpty ? 0 : 1)
  }

  /// The server in a process of its own, with the socket as systemd passes it.
  private static func start(_ listener: Listener, _ manager: FakeServiceManager) -> pid_t {
    var files = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&files)
    posix_spawn_file_actions_adddup2(&files, listener.descriptor, 3)
    defer { posix_spawn_file_actions_destroy(&files) }
    let script = "LISTEN_PID=$$ exec \"$0\" serve"
    let passed = ["LISTEN_FDS": "1", "LISTEN_FDNAMES": "http"]
    let variables = manager.environment.merging(passed) { $1 }.map { "\($0)=\($1)" }
    let arguments =
      ["/bin/sh", "-c", script, CommandLine.arguments[0]].map { (text: String) in strdup(text) } + [
        nil
      ]
    let environment = variables.map { (text: String) in strdup(text) } + [nil]
    defer { for text in arguments + environment { free(text) } }
    var child: pid_t = 0
    posix_spawn(&child, "/bin/sh", &files, nil, arguments, environment)
    return child
  }
}
