// SPDX-License-Identifier: Apache-2.0
import Foundation
import Measuring

/// From SIGTERM to the hook, and to the end of the process.
enum Stop: Row {
  static let name = "stop"

  static func run(_ bench: Bench) throws {
    try hook(bench)
    try concurrent(bench)
    try reaped(bench)
  }

  /// With Swift's pool blocked and not.
  private static func hook(_ bench: Bench) throws {
    let row = "SIGTERM → first hook"
    let contestants = [
      Contestant(name: "pool free", program: bench.swift("Ours", "actor")),
      Contestant(name: "pool fully blocked", program: bench.swift("Ours", "blocked")),
    ]
    // One signal a process, so many processes a round.
    try bench.interleave(row, contestants, rounds: bench.isQuick ? 3 : 7) { contestant in
      let latencies = try (0..<(bench.isQuick ? 10 : 20)).map { _ in
        let child = try Child(contestant.program)
        defer { child.end() }
        try child.untilReady()
        pause(milliseconds: 60)
        let sent = child.send(SIGTERM)
        return Double(try child.stamp() - sent) / 1000
      }
      return [("p50", "µs", latencies.quantile(0.5))]
    }
    bench.results.judgeRatio(row, "p50", "pool fully blocked", to: "pool free", atMost: 1.25)
  }

  private static func concurrent(_ bench: Bench) throws {
    let row = "stop, 100 observers of 50 ms in a concurrent phase"
    let contestants = [
      Contestant(
        name: "waiting on the subject's clock", program: bench.swift("Ours", "sleep-async")),
      Contestant(name: "blocking a thread each", program: bench.swift("Ours", "sleep-blocking")),
    ]
    try measureEnd(bench, row, contestants, rounds: bench.isQuick ? 3 : 9)
    for contestant in contestants {
      bench.results.judge(
        row, "\(contestant.name) ≤ 1.3 × 50 ms",
        bench.results.measurement(row, contestant.name, "reaped").map { $0.median / 50_000 },
        atMost: 1.3, "×")
    }
  }

  private static func reaped(_ bench: Bench) throws {
    let row = "SIGTERM → reaped, 3 observers that write a file each"
    let directory = bench.directory + "/scratch/files"
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true)
    let contestants = [
      Contestant(
        name: "C", program: Program(path: bench.c("terminate").path, arguments: [directory])),
      Contestant(
        name: "DispatchSource", program: bench.swift("DispatchSignal", "write", directory)),
      Contestant(
        name: "DispatchSource, static stdlib",
        program: bench.staticSwift("DispatchSignal", "write", directory)),
      Contestant(name: "ours", program: bench.swift("Ours", "write", directory)),
      Contestant(
        name: "ours, static stdlib", program: bench.staticSwift("Ours", "write", directory)),
    ]
    try measureEnd(bench, row, contestants, rounds: bench.isQuick ? 5 : 31)
    bench.results.judgeRatio(row, "reaped", "ours", to: "C", atMost: 1.2)
    bench.results.judgeRatio(row, "reaped", "ours, static stdlib", to: "C", atMost: 1.2)
    for kind in ["", ", static stdlib"] {
      if let factor = bench.results.ratio(row, "reaped", "ours" + kind, to: "DispatchSource" + kind)
      {
        bench.results.note(
          "\(row): ours\(kind): \(short(factor)) × a Swift program with a DispatchSource")
      }
    }
  }

  private static func measureEnd(
    _ bench: Bench, _ row: String, _ contestants: [Contestant], rounds: Int
  ) throws {
    try bench.interleave(row, contestants, rounds: rounds) { contestant in
      let child = try Child(contestant.program)
      try child.untilReady()
      pause(milliseconds: 60)
      let sent = child.send(SIGTERM)
      let (status, time) = child.reap()
      guard status == 0 else { throw HarnessError("\(contestant.name) ended with \(status)") }
      return [("reaped", "µs", Double(time - sent) / 1000)]
    }
  }
}
