// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle

/// Answers lines with the time: an example of a server whose connections are child tasks. A pause or a stop
/// loses no request that has begun, up to a limit, and waits for no client that is idle.
///
///     swift build --product clockd; .build/debug/clockd & sleep 1
///     printf 'time\nwait 2\n' | nc -N 127.0.0.1 7070
///     kill -USR1 %1; sleep 1; kill -USR2 %1; sleep 1; kill %1
///
/// What it takes is in `serve` below, and the round that `Server` is given: it says when to take nothing new. `Socket` is
/// what a library for servers would bring.
///
/// | what happens | to the clients |
/// | --- | --- |
/// | SIGUSR1 | who is idle hears the end at once; a request under way is answered first; who comes meanwhile waits for SIGUSR2 |
/// | SIGTERM | the same, and the process ends |
/// | an answer that takes longer than 20 s then | is cut off, and the report says whose: "clients"; a stop ends with status 124 |
@main struct Clockd {
  static func main() async {
    let arguments = CommandLine.arguments.dropFirst()
    let numbers = arguments.compactMap { UInt16($0) }
    guard arguments.count <= 2, numbers.count == arguments.count else {
      let isHelp = ["--help", "-h"].contains(arguments.first)
      say(
        "usage: clockd [PORT [LIMIT]]; lines are \"time\" or \"wait SECONDS\"; the port is 7070 and a drain's limit 20 s"
          + " unless said"
      )
      exit(isHelp ? 0 : 64)
    }
    let limit = Duration.seconds(numbers.dropFirst().first ?? 20)
    do { try await serve(numbers.first ?? 7070, draining: limit) } catch {
      say("\(error)")
      exit(71)
    }
  }

  private static func serve(_ port: UInt16, draining limit: Duration) async throws -> Never {
    let lifecycle = LifecycleSubject()
    // Made once, before the launch: so a port that is taken is an error at once, and who comes during a
    // pause waits in the listener's queue.
    let server = Server(try Socket(listeningOn: port), clock: lifecycle.clock, say: say)
    say("serving 127.0.0.1:\(server.listener.port)")

    let result = try await lifecycle.run {
      try await lifecycle.foreground(draining: limit, name: "clients") { round in
        try await server.serve(round)
      }
    }
    exit(result.code)
  }

  /// A line for whoever operates this, on standard error.
  @Sendable private static func say(_ sentence: String) {
    let line = Array("clockd: \(sentence)\n".utf8)
    _ = write(2, line, line.count)
  }
}
