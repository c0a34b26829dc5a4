// SPDX-License-Identifier: Apache-2.0
import Measuring

/// What a daemon costs that has nothing to do: 10 s of it, after 12 s.
enum Idle: Row {
  static let name = "idle"

  static func run(_ bench: Bench) throws {
    let row = "idle for 10 s, after 12 s"
    let contestants = [
      Contestant(name: "C sigaction+pipe+thread", program: bench.c("pipe")),
      Contestant(name: "empty Swift program", program: bench.swift("Empty")),
      Contestant(name: "Swift program after one task", program: bench.swift("OneTask")),
      Contestant(name: "DispatchSource", program: bench.swift("DispatchSignal", "bare")),
      Contestant(name: "ours: async main", program: bench.swift("Minimal")),
      Contestant(name: "ours: runAndExit", program: bench.swift("OursSync", "actor")),
    ].filter { exists($0.program.path) }
    var values: [String: [(switches: Double, threads: Double)]] = [:]
    for round in 1...(bench.isQuick ? 1 : 3) {
      progress("\(row): round \(round)")
      // All together: none does anything.
      let children = try contestants.map { ($0.name, try Child($0.program)) }
      defer { for (_, child) in children { child.end() } }
      for (_, child) in children { try child.untilReady() }
      // The last one-off check of the signals' handlers is 10 s after the launch.
      pause(milliseconds: 12_000)
      let before = try children.map { try Accounting(of: $0.1) }
      pause(milliseconds: 10_000)
      for ((name, child), earlier) in zip(children, before) {
        let now = try Accounting(of: child)
        values[name, default: []].append(
          (Double(now.contextSwitches - earlier.contextSwitches), Double(now.threads)))
      }
    }
    for contestant in contestants {
      let rounds = values[contestant.name] ?? []
      bench.results.record(row, contestant.name, "switches", "", rounds.map(\.switches))
      bench.results.record(row, contestant.name, "threads", "", rounds.map(\.threads))
    }
    judge(bench.results, row)
  }

  /// The least of the rounds, since the kernel may move a thread at any time. Where the pool was used, Dispatch's own
  /// thread wakes once a second: that is what a program with one task does too, and is not caused by us.
  private static func judge(_ results: Results, _ row: String) {
    func least(_ name: String, _ metric: String) -> Double? {
      results.measurement(row, name, metric)?.rounds.min()
    }
    for (name, peer) in [
      ("ours: async main", "empty Swift program"),
      ("ours: runAndExit", "Swift program after one task"),
    ] {
      let own = least(peer, "switches") ?? 0
      results.judge(
        row, "\(name): no context switch but those of: \(peer)",
        least(name, "switches").map { max(0, $0 - own) }, atMost: 0, "")
    }
    results.judge(
      row, "ours: async main: main and one more thread", least("ours: async main", "threads"),
      atMost: 2, "")
    results.judge(
      row, "ours: runAndExit: one more thread than: Swift program after one task",
      least("ours: runAndExit", "threads").map {
        $0 - (least("Swift program after one task", "threads") ?? 0)
      }, atMost: 1, "")
  }
}
