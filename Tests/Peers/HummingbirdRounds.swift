// SPDX-License-Identifier: Apache-2.0
// The guide's Hummingbird server under 8 clients, with 20 pauses, reloads and a stop: no answer is cut, and the stop has
// nothing to report.
import DaemonLifecycle
import Given
import Glibc
import Logging

@testable import Recipes

@main struct HummingbirdRounds {
  static func main() async throws {
    alarm(50)  // should something hang
    let listener = Listener()
    listener.close()  // each round binds its port again
    let lifecycle = LifecycleSubject()
    addServer(
      to: lifecycle, port: listener.port, Logger(label: "http") { _ in SwiftLogNoOpLogHandler() })
    let clients = Clients(8, port: listener.port)
    lifecycle.addTask {
      for _ in 0..<20 {
        await clients.untilAnswered(20)
        for signal in [SIGHUP, SIGUSR1] { kill(getpid(), signal) }
        while lifecycle.state != .background { await Task.yield() }
        kill(getpid(), SIGUSR2)
        while lifecycle.state != .foreground { await Task.yield() }
      }
      await clients.untilAnswered(20)
      kill(getpid(), SIGTERM)
      try await lifecycle.clock.sleep(for: .seconds(1000))
    }
    let result = try await lifecycle.run()
    let counts = clients.stop()
    print("\(counts), \(result)")
    exit(counts.cut == 0 && result.exitStatus == 0 && result.report.problems.isEmpty ? 0 : 1)
  }
}
