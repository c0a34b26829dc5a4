// SPDX-License-Identifier: Apache-2.0
import Foundation
import Measuring

/// Runs the rows and says what came out: `Harness DIRECTORY [--quick] [--only NAME]`.
@main struct Harness {
  static let rows: [any Row.Type] = [
    SignalLatency.self, DeliveryCost.self, Stop.self, Start.self, DurableSave.self,
  ]

  static func main() {
    do { try measure() } catch {
      progress("\(error)")
      exit(1)
    }
  }

  private static func measure() throws {
    var arguments = Array(CommandLine.arguments.dropFirst())
    guard !arguments.isEmpty else { throw HarnessError("see Tests/Benchmarks/run") }
    let directory = arguments.removeFirst()
    let only = arguments.firstIndex(of: "--only").flatMap { index in
      index + 1 < arguments.count ? arguments[index + 1] : nil
    }
    let selected = rows.filter { only == nil || $0.name == only }
    guard !selected.isEmpty else {
      throw HarnessError("--only takes one of: \(rows.map { $0.name }.joined(separator: " "))")
    }
    let bench = Bench(
      results: Results(), isQuick: arguments.contains("--quick"), directory: directory)
    // One that fails must not take the others' results along.
    for row in selected {
      do { try row.run(bench) } catch { bench.results.fail("\(row.name): \(error)") }
    }
    let table = bench.results.table(machine: machine())
    print(table)
    if bench.results.hasFailed { exit(1) }
  }

  /// What a reader needs to judge the absolute numbers; the ratios are what counts.
  static func machine() -> String {
    let cores = ProcessInfo.processInfo.activeProcessorCount
    return "\(cores) cores, \(ProcessInfo.processInfo.operatingSystemVersionString)"
  }
}
