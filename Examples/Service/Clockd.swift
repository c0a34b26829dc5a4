import DaemonLifecycle
import Foundation

/// Answers lines with the time: an example of how a server that is one async loop gets a lifecycle, and loses no request
/// that it has begun to answer.
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
/// | SIGUSR1 | who is idle hears the end; a request under way is answered first; who comes meanwhile waits for SIGUSR2 |
/// | SIGTERM | the same, and the process ends |
/// | an answer that takes longer than 20 s then | is cut off, and the daemon ends with status 124, as the report says |
@main struct Clockd {
  static func main() async {
    let arguments = CommandLine.arguments.dropFirst()
    let port = arguments.isEmpty ? 7070 : UInt16(arguments.first ?? "")
    guard arguments.count <= 1, let port else {
      let isHelp = ["--help", "-h"].contains(arguments.first)
      say(
        "usage: clockd [PORT]; lines are \"time\" or \"wait SECONDS\", the port is 7070 unless said"
      )
      exit(isHelp ? 0 : 64)
    }
    do { try await serve(port) } catch {
      say("\(error)")
      exit(71)
    }
  }

  private static func serve(_ port: UInt16) async throws -> Never {
    let lifecycle = LifecycleSubject()
    // Made once, before the launch: so a port that is taken is an error at once, and who comes during a
    // pause waits in the listener's queue.
    let server = Server(try Socket(listeningOn: port), clock: lifecycle.clock, say: say)
    say("serving 127.0.0.1:\(server.listener.port)")

    let result = try await lifecycle.run {
      try await lifecycle.foreground(draining: .seconds(20)) { try await server.serve($0) }
    }
    exit(result.code)
  }

  /// A line for whoever operates this, on standard error.
  @Sendable private static func say(_ sentence: String) {
    let line = Array("clockd: \(sentence)\n".utf8)
    _ = write(2, line, line.count)
  }
}
