// SPDX-License-Identifier: Apache-2.0
import Measuring

/// Many sleeps on the subject's clock, cancelled at once, as by a server that stops.
enum Sleeps: Row {
  static let name = "sleeps"

  static func run(_ bench: Bench) throws {
    let count = bench.isQuick ? 8_000 : 100_000
    let row = "\(count) cancelled sleeps"
    progress(row)
    let child = try Child(bench.swift("Workload", "sleeps", "\(count)"), patience: 600_000)
    defer { child.end() }
    guard let milliseconds = try child.values().first?.value else {
      throw HarnessError("nothing was measured")
    }
    bench.results.record(row, "ours", "time", "ms", [milliseconds])
    bench.results.judge(row, "100,000 in 200 ms", milliseconds, atMost: 200, "ms")
  }
}
