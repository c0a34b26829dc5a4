// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Clients of a line server that check each answer, while shell commands disturb the server.
///
///     load PORT --clients=200 --connectors=8 --do='systemctl restart echod' --do=…
///
///     --clients=N      connections that stay: pipelined lines of many lengths, sent in pieces, with pauses in a line
///     --connectors=N   connections that are made, used for a line or two, ended and made again
///     --do=COMMAND     run one after another; before each, every client has had three more answers
///     --quiesce        before each command everything is answered, and nothing is half sent
///     --last=COMMAND   at the end: 50 lines of each client are sent, then it is run; each answer and then an end
///                      has to come. A tenth of the clients leaves half a line as well
///     --unread         instead, each client has sent as much as is taken while it reads nothing
///     --through        instead, they are as busy as before, and go on: each answer has to be right, and an end to come
///
/// Prints one line of counts; the exit status is 1 if one of them should be 0 and is not.
final class LoadProbe {
  private enum Step {
    case progress, quiesce
    case command(pid_t)
    case lastLines
    case lastCommand(pid_t)
    case ends, over
  }

  private let options: Options
  private let port: UInt16
  private var clients: [LoadClient] = []
  private var commands: [String]
  private var step = Step.progress
  private var counts = LoadCounts()
  private var began = monotonicSeconds()
  /// Nothing has gone on for so long: an error.
  private let patience = 60.0

  init(_ options: Options, port: UInt16) {
    self.options = options
    self.port = port
    commands = options.all("--do")
    let (steady, connectors) = (options.number("--clients"), options.number("--connectors"))
    for id in 0..<steady + connectors {
      clients.append(LoadClient(id: id, staysConnected: id < steady))
    }
  }

  func run() -> Never {
    signal(SIGPIPE, SIG_IGN)
    while true {
      let now = monotonicSeconds()
      for client in clients { client.act(now, port, &counts) }
      advance()
      if case .over = step { finish() }
      if now - began > patience {
        say("load: stuck in \(step)")
        for client in clients.filter({ !$0.isDone }).prefix(5) { say("load: \(client.summary)") }
        counts.stuck += 1
        finish()
      }
      wait(now)
    }
  }

  private func wait(_ now: Double) {
    var polls = clients.map { pollfd(fd: $0.socket, events: $0.events(now), revents: 0) }
    let rests = clients.compactMap { $0.restsUntil > now ? $0.restsUntil - now : nil }
    let limit = min(rests.min() ?? 0.01, 0.01)
    poll(&polls, nfds_t(polls.count), Int32(limit * 1000) + 1)
    for (client, poll) in zip(clients, polls) where poll.revents != 0 {
      client.isReady = true
    }
  }

  private func finish() -> Never {
    for client in clients { client.count(&counts) }
    say("load: \(counts)")
    exit(counts.isGood ? 0 : 1)
  }

  // MARK: Steps

  private func go(to next: Step) {
    step = next
    began = monotonicSeconds()
    for client in clients { client.answersInStep = 0 }
  }

  private func advance() {
    switch step {
    case .progress:
      let steady = clients.filter(\.staysConnected)
      guard steady.allSatisfy({ $0.answersInStep >= 3 || $0.isGone }) else { return }
      if commands.isEmpty { return end(steady) }
      if !options.has("--quiesce") { return go(to: .command(start(commands.removeFirst()))) }
      for client in clients { client.mode = .finishing }
      go(to: .quiesce)
    case .quiesce:
      guard clients.allSatisfy(\.isDone) else { return }
      go(to: .command(start(commands.removeFirst())))
    case .command(let pid):
      guard hasEnded(pid) else { return }
      for client in clients { client.mode = .busy }
      go(to: .progress)
    case .lastLines:
      guard clients.allSatisfy({ $0.hasSentAll(monotonicSeconds()) }) else { return }
      for client in clients where client.mode == .stuffing { client.stopStuffing() }
      go(to: .lastCommand(start(options["--last"] ?? "true")))
    case .lastCommand(let pid): if hasEnded(pid) { go(to: .ends) }
    case .ends: if clients.allSatisfy(\.isGone) { go(to: .over) }
    case .over: break
    }
  }

  private func end(_ steady: [LoadClient]) {
    if options.has("--last") {
      for client in clients where !client.staysConnected { client.mode = .finishing }
      for client in steady {
        if options.has("--through") {
          client.mode = .through
        } else if options.has("--unread") {
          client.mode = .stuffing
        } else {
          client.mode = .last
          client.sayLastLines(half: client.id % 10 == 0)
        }
      }
      return go(to: .lastLines)
    }
    for client in clients { client.mode = .finishing }
    if clients.allSatisfy(\.isDone) { go(to: .over) }
  }

  // MARK: Commands

  private func start(_ command: String) -> pid_t {
    let words: [String] = ["sh", "-c", command]
    let arguments = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var pid: pid_t = 0
    let failure = posix_spawnp(&pid, "sh", nil, nil, arguments, environ)
    if failure != 0 { say("load: posix_spawn: \(failure)") }
    counts.commands += 1
    return pid
  }

  private func hasEnded(_ pid: pid_t) -> Bool {
    var status: Int32 = 0
    guard waitpid(pid, &status, WNOHANG) == pid else { return false }
    if status != 0 { counts.failedCommands += 1 }
    return true
  }
}

/// What is printed at the end.
struct LoadCounts: CustomStringConvertible {
  var lines = 0
  var connects = 0
  var commands = 0
  var sentBytes = 0
  var receivedBytes = 0
  /// Those below should be 0.
  var refused = 0
  var dropped = 0
  var bad = 0
  var unanswered = 0
  var failedCommands = 0
  var stuck = 0

  var isGood: Bool { refused + dropped + bad + unanswered + failedCommands + stuck == 0 }

  var description: String {
    "lines=\(lines) connects=\(connects) commands=\(commands) sent=\(sentBytes) received=\(receivedBytes)"
      + " refused=\(refused) dropped=\(dropped) bad=\(bad) unanswered=\(unanswered)"
      + " failed=\(failedCommands) stuck=\(stuck)"
  }
}

func monotonicSeconds() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
