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
      Contestant(name: "ours, static stdlib", program: bench.staticSwift("Minimal")),
    ]
    try bench.interleave(row, contestants, rounds: bench.isQuick ? 9 : 41) { contestant in
      let child = try Child(contestant.program)
      defer { child.end() }
      let ready = try child.untilReady()
      pause(milliseconds: 50)
      let resident = try Accounting(of: child).residentKilobytes
      return [
        ("READY", "ms", Double(ready - child.spawned) / 1_000_000),
        ("resident", "kB", Double(resident)),
      ]
    }
    let (ours, empty) = ("ours, static stdlib", "empty Swift program, static stdlib")
    bench.results.judgeRatio(row, "READY", ours, to: empty, atMost: 1.3)
    bench.results.judgeRatio(row, "resident", ours, to: empty, atMost: 1.5)
  }
}
