// SPDX-License-Identifier: Apache-2.0
import Foundation
import Measuring

/// StateStore.save beside the same calls in C, on the same disk.
enum DurableSave: Row {
  static let name = "save"

  static func run(_ bench: Bench) throws {
    for (size, text) in [(4000, "4 kB"), (4_000_000, "4 MB")] {
      let row = "durable save of \(text)"
      let contestants = [
        Contestant(name: "the same calls in C", program: bench.c("save")),
        Contestant(name: "ours", program: bench.swift("Save")),
      ]
      // Short turns, many of them: a disk has moods.
      let count = size < 10_000 ? 20 : 5
      try bench.interleave(row, contestants, rounds: bench.isQuick ? 7 : 31) { contestant in
        let directory = bench.directory + "/scratch/state"
        try? FileManager.default.removeItem(atPath: directory)
        try FileManager.default.createDirectory(
          atPath: directory, withIntermediateDirectories: true,
          attributes: [.posixPermissions: 0o700])
        let child = try Child(contestant.program, adding: [directory, "\(size)", "\(count)"])
        defer { child.end() }
        let times = try child.values().map(\.value)
        guard times.count == count else {
          throw HarnessError("\(contestant.name) saved too little")
        }
        return [("time", "µs", times.median / 1000)]
      }
      bench.results.judgeRatio(row, "time", "ours", to: "the same calls in C", atMost: 1.1)
    }
  }
}
