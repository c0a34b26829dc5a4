// SPDX-License-Identifier: Apache-2.0
import Measuring

/// How long it takes to tell N observers, for one of them; and to add and remove one where there are N.
enum DeliveryCost: Row {
  static let name = "delivery"
  private static let counts = [1, 100, 10_000, 100_000]

  private static let contestants: [(name: String, argument: String)] = [
    ("ours: classes, in sequence", "classes"),
    ("ours: actors, in sequence", "actors"),
    ("ours: classes, concurrent phase", "classes-concurrent"),
    ("ours: actors, concurrent phase", "actors-concurrent"),
    ("ours: closures that do not wait", "closures"),
    ("loop on our executor: classes", "loop-classes"),
    ("loop on our executor: actors", "loop-actors"),
    ("task group on our executor: classes", "group-classes"),
    ("task group on our executor: actors", "group-actors"),
    ("NotificationCenter: blocks", "blocks"),
    ("NotificationCenter: AsyncMessage", "async-message"),
  ]

  static func run(_ bench: Bench) throws {
    for count in counts {
      let row = "delivery to \(count), per observer"
      try measure(bench, row, count, contestants)
      judge(bench.results, row)
    }
    for count in counts {
      try measure(
        bench, "a registry of \(count)", count,
        [("ours", "registry"), ("NotificationCenter: blocks", "registry-blocks")])
    }
    judgeGrowth(bench.results)
  }

  private static func measure(
    _ bench: Bench, _ row: String, _ count: Int, _ contestants: [(name: String, argument: String)]
  ) throws {
    // Few observers take no time, and whether two threads share a processor matters: many processes.
    let rounds = count <= 100 ? 15 : 5
    try bench.interleave(
      row,
      contestants.map {
        Contestant(name: $0.name, program: bench.swift("Delivery", $0.argument, "\(count)"))
      }, rounds: bench.isQuick ? max(1, rounds / 3) : rounds
    ) { contestant in
      let child = try Child(contestant.program, patience: 40_000)
      defer { child.end() }
      return try child.values().map { ($0.metric, "ns", $0.value) }
    }
  }

  private static func judge(_ results: Results, _ row: String) {
    let goals: [(contestant: String, other: String, bound: Double)] = [
      ("ours: classes, in sequence", "loop on our executor: classes", 1.5),
      ("ours: actors, in sequence", "loop on our executor: actors", 1.5),
      ("ours: classes, in sequence", "NotificationCenter: AsyncMessage", 0.1),
      ("ours: classes, concurrent phase", "NotificationCenter: AsyncMessage", 0.25),
      ("ours: actors, concurrent phase", "NotificationCenter: AsyncMessage", 0.25),
      ("ours: closures that do not wait", "NotificationCenter: blocks", 1),
    ]
    for goal in goals {
      results.judgeRatio(row, "time", goal.contestant, to: goal.other, atMost: goal.bound)
    }
  }

  /// Linear in observers: a thousand times as many cost each at most twice as much. O(log n): adding to
  /// 100,000 costs at most 3 times what adding to 100 does, as the logarithm is 2.5 times as large.
  private static func judgeGrowth(_ results: Results) {
    func growth(_ row: (Int) -> String, _ name: String, _ metric: String) -> Double? {
      guard let small = results.measurement(row(100), name, metric),
        let large = results.measurement(row(100_000), name, metric)
      else { return nil }
      return large.median / small.median
    }
    for (name, _) in contestants where name.hasPrefix("ours") {
      results.judge(
        "delivery", "\(name): each of 100,000 ≤ 2 × each of 100",
        growth({ "delivery to \($0), per observer" }, name, "time"), atMost: 2, "×")
    }
    for metric in ["add", "remove"] {
      results.judge(
        "registry", "\(metric) at 100,000 ≤ 3 × \(metric) at 100",
        growth({ "a registry of \($0)" }, "ours", metric), atMost: 3, "×")
    }
  }
}
