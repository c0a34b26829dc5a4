// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport

/// What happens to the one that writes, or to the engine.
enum Event: String {
  case term = "SIGTERM"
  case kill = "kill -9 of the daemon"
  case machine = "kill -9 of daemon, guard and elector"
  case elector = "kill -9 of the elector"
  case freeze = "freeze of all"
  case frozenElector = "freeze of the elector"
  case partition
  case place = "loss of the standby's place, SIGTERM"
  case node = "death of a node"
  case quorum = "loss of the quorum"
  case crash = "crash of the server"

  /// Of so many rounds those that wait for a time to live are half, and those that wait for servers a fifth.
  func rounds(_ count: Int) -> Int {
    switch self {
    case .term, .kill: count
    case .machine, .elector, .freeze, .frozenElector, .partition, .place: (count + 1) / 2
    case .node, .quorum, .crash: (count + 4) / 5
    }
  }

  /// Whether another is active afterwards; `nil`: as the engine decides.
  func takesOver(_ engine: Engine) -> Bool? {
    switch self {
    case .freeze: engine.hasTimeToLive
    case .node: nil
    default: true
    }
  }
}

/// One event, and what follows until one writes again.
struct Round {
  let pair: Pair
  let event: Event
  let last: LedgerLines.Line
  private let began: Int

  /// Milliseconds: the longest time without a line; and, if there was one, until the other's first line.
  private(set) var pause = 0
  private(set) var takeOver: Int?

  /// - Parameter number: selects the node that dies.
  init(_ event: Event, in pair: Pair, number: Int) throws {
    (self.event, self.pair) = (event, pair)
    last = try pair.settle()
    // In each round at another moment between two lines.
    usleep(UInt32(number * 1700 % 10_000))
    began = milliseconds()
    try happen(number)
    let mustTakeOver = event.takesOver(pair.engine) == true
    if !isTakenOver { try pair.nextLine { [last] in !mustTakeOver || $0.token > last.token } }
    measure()
  }

  private var isTakenOver: Bool { pair.ledger.all.last.map { $0.token > last.token } ?? false }

  private func happen(_ number: Int) throws {
    let name = last.name
    let (daemon, guardian, elector) = pair.processes(of: name)
    switch event {
    case .term: pair.send(SIGTERM, to: name, as: .status(0))
    case .kill: pair.send(SIGKILL, to: name, as: .signal(SIGKILL))
    case .machine:
      // The elector first, or it would give the lease back.
      send(SIGKILL, elector + guardian)
      pair.send(SIGKILL, to: name, as: .signal(SIGKILL))
    case .elector: send(SIGKILL, elector)
    case .freeze: try freeze(elector + guardian + daemon)
    case .frozenElector: try freeze(elector)
    case .partition:
      let stops = pair.count("stands by at")
      try pair.engine.network?.set(name, "down")
      defer { try? pair.engine.network?.set(name, "up") }
      waitForOther()
      try pair.until("it hears of its loss") { pair.count("stands by at") > stops }
    case .place:
      let electors = pair.processes(of: name == "a" ? "b" : "a").elector
      send(SIGSTOP, electors)
      defer { send(SIGCONT, electors) }
      try pair.until("the standby's lease has expired") { pair.contenders == ["1"] }
      pair.send(SIGTERM, to: name, as: .status(0))
    case .node:
      try pair.engine.stop(number % 3 + 1, SIGKILL)
      let end = began + (pair.engine.timeToLive + 1) * 1000
      try pair.nextLine { $0.time > end }
      try pair.engine.start(number % 3 + 1)
    case .quorum:
      let nodes = [number % 3 + 1, (number + 1) % 3 + 1]
      for node in nodes { try pair.engine.stop(node, SIGKILL) }
      try pair.silence()
      for node in nodes { try pair.engine.start(node) }
    case .crash:
      try pair.engine.stop(1, SIGQUIT)
      try pair.engine.start(1)
    }
  }

  private func send(_ signal: Int32, _ processes: [pid_t]) {
    for process in processes { Glibc.kill(process, signal) }
  }

  private func freeze(_ processes: [pid_t]) throws {
    send(SIGSTOP, processes)
    defer { send(SIGCONT, processes) }
    waitForOther()
  }

  /// Until the other writes. It can't while one is frozen that has the ledger's own lock, or the lease of an engine without a
  /// time to live: so not for ever.
  private func waitForOther() {
    let seconds = pair.engine.hasTimeToLive ? 3 * Double(pair.engine.timeToLive) : 1
    _ = try? pair.nextLine(within: seconds) { [last] in $0.token > last.token }
  }

  private mutating func measure() {
    let lines = pair.ledger.all.drop { $0.number < last.number }
    let first = lines.first { $0.token > last.token }
    takeOver = first.map { $0.time - began }
    let counted = lines.prefix { $0.number <= first?.number ?? .max }
    pause = zip(counted, counted.dropFirst()).map { $1.time - $0.time }.max() ?? 0
  }
}
