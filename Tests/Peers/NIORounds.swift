// SPDX-License-Identifier: Apache-2.0
// The guide's server of SwiftNIO: a pause ends its connections and a resume serves again, as often as it is asked.
import DaemonLifecycle
import Given
import Glibc

@testable import Recipes

@main struct NIORounds {
  static func main() async throws {
    alarm(50)  // should something hang
    let listener = Listener()
    listener.close()  // each round binds its port again
    let lifecycle = LifecycleSubject()
    addEcho(to: lifecycle, port: listener.port)
    lifecycle.addTask {
      for _ in 0..<20 {
        let client = await echoingClient(listener.port)
        kill(getpid(), SIGUSR1)
        while lifecycle.state != .background { await Task.yield() }
        var byte: UInt8 = 0
        if recv(client, &byte, 1, 0) != 0 { fatalError("The connection outlived the round.") }
        close(client)
        if connected(to: listener.port) != nil { fatalError("A pause accepts clients.") }
        kill(getpid(), SIGUSR2)
      }
      _ = await echoingClient(listener.port)
      kill(getpid(), SIGTERM)
      try await lifecycle.clock.sleep(for: .seconds(1000))
    }
    let result = try await lifecycle.run()
    print("\(result)")
    exit(result.exitStatus == 0 && result.report.problems.isEmpty ? 0 : 1)
  }

  /// A connection over which a byte came back.
  private static func echoingClient(_ port: Int) async -> Int32 {
    while true {
      if let client = connected(to: port) {
        var byte: UInt8 = 7
        if send(client, &byte, 1, Int32(MSG_NOSIGNAL)) == 1, recv(client, &byte, 1, 0) == 1 {
          return client
        }
        close(client)
      }
      await Task.yield()
    }
  }
}
