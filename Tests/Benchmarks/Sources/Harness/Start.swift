// SPDX-License-Identifier: Apache-2.0
import Measuring

/// From spawn to READY, and what is resident a little later.
enum Start: Row {
  static let name = "start"

  static func run(_ bench: Bench) throws {
    let row = "start: spawn → READY, and resident memory"
    let contestants = [
      Contestant(name: "C signalfd+epoll", program: bench.c("signalfd")),
      Contestant(name: "empty Swift program", program: bench.swift("Empty")),
      Contestant(name: "ours", program: bench.swift("Minimal")),
      Contestant(name: "empty Swift program, static stdlib", program: bench.staticSwift("Empty")),
      Contestant(
        name: "Swift program after one task, static stdlib",
        program: bench.staticSwift("OneTask")),
      Contestant(name: "ours, static stdlib", program: bench.staticSwift("Minimal")),
    ]
    try bench.interleave(row, contestants, rounds: bench.isQuick ? 9 : 41) { contestant in
      let child = try Child(contestant.program)
      defer { child.end() }
      let ready = try child.untilReady()
      pause(milliseconds: 50)
      let memory = try Accounting(of: child)
      return [
        ("READY", "ms", Double(ready - child.spawned) / 1_000_000),
        ("resident", "kB", Double(memory.residentKilobytes)),
        ("its own", "kB", Double(memory.anonymousKilobytes)),
      ]
    }
    let (ours, empty) = ("ours, static stdlib", "empty Swift program, static stdlib")
    bench.results.judgeRatio(row, "READY", ours, to: empty, atMost: 1.3)
    bench.results.judgeRatio(row, "resident", ours, to: empty, atMost: 1.5)
    for metric in ["READY", "resident", "its own"] {
      let task = "Swift program after one task, static stdlib"
      guard let factor = bench.results.ratio(row, metric, ours, to: task) else { continue }
      bench.results.note("\(row): \(metric): \(ours): \(short(factor)) × \(task)")
    }
  }
}
