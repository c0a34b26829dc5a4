// SPDX-License-Identifier: Apache-2.0
import Glibc
import Measuring

/// SIGUSR1 from another process to an idle daemon: how long until the first line of what handles it.
enum SignalLatency: Row {
  static let name = "signal"
  private static let row = "signal → first line"

  static func run(_ bench: Bench) throws {
    let contestants = [
      Contestant(name: "C signalfd+epoll", program: bench.c("signalfd")),
      Contestant(name: "C sigaction+pipe+thread", program: bench.c("pipe")),
      Contestant(name: "sd-event", program: bench.c("sd-event")),
      Contestant(name: "DispatchSource", program: bench.swift("DispatchSignal", "bare")),
      Contestant(name: "DispatchSource, actor", program: bench.swift("DispatchSignal", "actor")),
      Contestant(
        name: "DispatchSource, @MainActor", program: bench.swift("DispatchSignal", "main")),
      Contestant(name: "ours: async main, actor", program: bench.swift("Ours", "actor")),
      Contestant(name: "ours: runAndExit, @MainActor", program: bench.swift("OursSync", "main")),
      Contestant(name: "ours: runAndExit, actor", program: bench.swift("OursSync", "actor")),
    ]
    let samples = bench.isQuick ? 150 : 500
    try bench.interleave(row, contestants, rounds: bench.isQuick ? 3 : 7) { contestant in
      let latencies = try latencies(of: contestant.program, samples: samples)
      return [
        ("p50", "µs", latencies.quantile(0.5)), ("p99", "µs", latencies.quantile(0.99)),
      ]
    }
    try rare(bench, contestants.filter { exists($0.program.path) })
    let results = bench.results
    for metric in ["p50", "p99"] {
      let ours = "ours: async main, actor"
      results.judgeRatio(row, metric, ours, to: "DispatchSource", atMost: 1)
      results.judgeRatio(row, metric, ours, to: "C sigaction+pipe+thread", atMost: 1.3)
    }
    for kind in ["@MainActor", "actor"] {
      results.judgeRatio(
        row, "p50", "ours: runAndExit, \(kind)", to: "sd-event", atMost: 1.5)
    }
    // What Swift's own way to the same place takes.
    for (ours, theirs) in [
      ("async main, actor", "actor"), ("runAndExit, @MainActor", "@MainActor"),
    ] {
      if let factor = results.ratio(row, "p50", "ours: \(ours)", to: "DispatchSource, \(theirs)") {
        results.note(
          "\(row): ours, \(ours): \(short(factor)) × a DispatchSource that goes on into the same")
      }
    }
  }

  /// A signal every 1.5 s, as real ones are rare: what was kept at hand for the next one may have gone by then. All
  /// contestants wait together, and hear one after another.
  private static func rare(_ bench: Bench, _ contestants: [Contestant]) throws {
    let row = "signal → first line, after 1.5 s of nothing"
    let children = try contestants.map { ($0.name, try Child($0.program)) }
    defer { for (_, child) in children { child.end() } }
    for (_, child) in children { try child.untilReady() }
    var latencies: [String: [Double]] = [:]
    for sample in 0..<(bench.isQuick ? 10 : 40) {
      if sample % 10 == 0 { progress("\(row): sample \(sample)") }
      pause(milliseconds: 1500)
      for (name, child) in children.shuffled() {
        let sent = child.send(sample % 2 == 0 ? SIGUSR1 : SIGUSR2)
        latencies[name, default: []].append(Double(try child.stamp() - sent) / 1000)
        pause(milliseconds: 2)
      }
    }
    for (name, _) in children {
      bench.results.record(row, name, "p50", "µs", latencies[name] ?? [])
    }
  }

  /// In µs. SIGUSR2 between two takes our daemon back to the foreground; it is sent to all, and not counted.
  private static func latencies(of program: Program, samples: Int) throws -> [Double] {
    let child = try Child(program)
    defer { child.end() }
    try child.untilReady()
    pause(milliseconds: 100)
    var latencies: [Double] = []
    for sample in 0..<samples + 10 {
      let sent = child.send(SIGUSR1)
      let latency = Double(try child.stamp() - sent) / 1000
      if sample >= 10 { latencies.append(latency) }
      pause(milliseconds: 1)
      child.send(SIGUSR2)
      _ = try child.stamp()
      pause(milliseconds: 1)
    }
    return latencies
  }
}
