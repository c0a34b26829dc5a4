// SPDX-License-Identifier: Apache-2.0
import Foundation
import Measuring

/// What the package adds to a stripped executable.
enum Size: Row {
  static let name = "size"

  static func run(_ bench: Bench) throws {
    let row = "stripped executable"
    let kinds = [("static stdlib", bench.staticSwift, 1500.0), ("dynamic", bench.swift, 500.0)]
    for (kind, program, bound) in kinds {
      let empty = try stripped(program("Empty", []).path, bench)
      let ours = try stripped(program("Minimal", []).path, bench)
      bench.results.record(row, "empty Swift program, \(kind)", "size", "kB", [empty])
      bench.results.record(row, "ours, \(kind)", "size", "kB", [ours])
      bench.results.judge(
        row, "\(kind): added to an empty Swift program ≤ \(short(bound)) kB", ours - empty,
        atMost: bound, "kB")
    }
  }

  /// In thousands of bytes.
  private static func stripped(_ path: String, _ bench: Bench) throws -> Double {
    let copy = bench.directory + "/scratch/stripped"
    try Tool.run("strip", "-s", "-o", copy, path)
    let attributes = try FileManager.default.attributesOfItem(atPath: copy)
    return Double((attributes[.size] as? Int) ?? 0) / 1000
  }
}
