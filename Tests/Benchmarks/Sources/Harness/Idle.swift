import Measuring

/// What a daemon costs that has nothing to do: 10 s of it, after 10 s.
enum Idle: Row {
  static let name = "idle"

  static func run(_ bench: Bench) throws {
    let row = "idle for 10 s, after 10 s"
    let contestants = [
      Contestant(name: "C sigaction+pipe+thread", program: bench.c("pipe")),
      Contestant(name: "empty Swift program", program: bench.swift("Empty")),
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
      pause(milliseconds: 10_000)
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
    for name in ["ours: async main", "ours: runAndExit"] {
      let results = bench.results
      results.judge(
        row, "\(name): no context switch",
        results.measurement(row, name, "switches")?.rounds.min(), atMost: 0, "")
      results.judge(
        row, "\(name): main and one more thread",
        results.measurement(row, name, "threads")?.median, atMost: 2, "")
    }
  }
}
