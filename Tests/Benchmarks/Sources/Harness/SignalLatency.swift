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
      Contestant(name: "libuv", program: bench.c("libuv")),
      Contestant(name: "libevent", program: bench.c("libevent")),
      Contestant(name: "GLib", program: bench.c("glib")),
      Contestant(name: "DispatchSource", program: bench.swift("DispatchSignal", "bare")),
      Contestant(name: "DispatchSource, actor", program: bench.swift("DispatchSignal", "actor")),
      Contestant(name: "ours: async main, actor", program: bench.swift("Ours", "actor")),
      Contestant(name: "ours: async main, class", program: bench.swift("Ours", "class")),
      Contestant(name: "ours: runAndExit, @MainActor", program: bench.swift("OursSync", "main")),
      Contestant(name: "ours: runAndExit, actor", program: bench.swift("OursSync", "actor")),
    ]
    let samples = bench.isQuick ? 150 : 500
    try bench.interleave(row, contestants, rounds: bench.isQuick ? 3 : 9) { contestant in
      let latencies = try latencies(of: contestant.program, samples: samples)
      return [
        ("p50", "µs", latencies.quantile(0.5)), ("p99", "µs", latencies.quantile(0.99)),
      ]
    }
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
