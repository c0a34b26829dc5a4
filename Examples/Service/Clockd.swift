// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd

/// Answers lines with the time: an example of a server whose connections are child tasks. A pause or a stop
/// loses no request that has begun, up to a limit, and waits for no client that is idle.
///
///     swift build --product clockd; .build/debug/clockd & sleep 1
///     printf 'time\nwait 2\n' | nc -N 127.0.0.1 7070
///     kill -USR1 %1; sleep 1; kill -USR2 %1; sleep 1; kill %1
///
/// The use of the lifecycle is in `serve` below, and in the round that `Server` is given, which ends when nothing new
/// should be accepted. `Socket` is what a library for servers would bring.
///
/// | what happens | to the clients |
/// | --- | --- |
/// | SIGUSR1 | idle connections end at once, others when their request is answered; new clients wait for SIGUSR2 |
/// | SIGTERM | the same, and the process ends |
/// | an answer that takes longer than 20 s then | is cut off, and the report names "clients"; a stop ends with status 124 |
@main struct Clockd {
  private static let usage = """
    Usage: clockd [--check-config] [PORT [LIMIT]]
           clockd --version

    Answers lines, "time" or "wait SECONDS", at 127.0.0.1:PORT (default: 7070; 0: any that is free).
    LIMIT is how many seconds a pause or a stop waits for answers that are under way (default: 20).

      --check-config  check the arguments, and end; there is no configuration file
      --version       print the version
      --help          print this

    Exit status: 0 all well, 64 bad arguments, 71 it can't listen there, 124 an answer was cut off.
    """

  static func main() {
    var arguments = Array(CommandLine.arguments.dropFirst())
    switch arguments.first {
    case "--help", "-h":
      print(usage)
      exit(0)
    case "--version":
      print("clockd 1.0.0")
      exit(0)
    default: break
    }
    let checksOnly = arguments.first == "--check-config"
    if checksOnly { arguments.removeFirst() }
    let numbers = arguments.compactMap { UInt16($0) }
    guard arguments.count <= 2, numbers.count == arguments.count else {
      let wrong = arguments.dropFirst(2).first ?? arguments.first { UInt16($0) == nil } ?? ""
      Journal.writeLine("\"\(wrong)\" is not a port or a limit (see clockd --help).", .error)
      exit(64)
    }
    if checksOnly {
      print("clockd: the arguments are valid; there is no configuration file")
      exit(0)
    }
    let limit = Duration.seconds(numbers.dropFirst().first ?? 20)
    serve(numbers.first ?? 7070, draining: limit)
  }

  private static func serve(_ port: UInt16, draining limit: Duration) -> Never {
    LifecycleSubject.runAndExit { lifecycle in
      // Made once, before the launch: a port that is taken is an error at once, and clients that connect during a
      // pause wait in the listener's queue.
      let server = Server(try Socket(listeningOn: port), clock: lifecycle.clock) {
        Journal.writeLine($0, .warning)
      }
      Journal.writeLine("serving 127.0.0.1:\(server.listener.port)")
      lifecycle.addForeground(name: "clients", draining: limit) { try await server.serve($0) }
    }
  }
}
