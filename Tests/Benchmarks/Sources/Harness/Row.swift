// SPDX-License-Identifier: Apache-2.0
import Measuring

/// One row of the table: contestants that do the same, side by side.
protocol Row: SendableMetatype {
  /// For `--only`.
  static var name: String { get }
  /// Measures, and judges the goals.
  static func run(_ bench: Bench) throws
}

/// What every row needs.
struct Bench {
  let results: Results
  let isQuick: Bool
  /// Where the run script has put things: `release`, `static`, `c`, `scratch`.
  let directory: String

  func swift(_ name: String, _ arguments: String...) -> Program { swift(name, arguments) }
  func swift(_ name: String, _ arguments: [String]) -> Program {
    Program(path: "\(directory)/release/\(name)", arguments: arguments)
  }
  /// Linked with `--static-swift-stdlib`.
  func staticSwift(_ name: String, _ arguments: String...) -> Program {
    staticSwift(name, arguments)
  }
  func staticSwift(_ name: String, _ arguments: [String]) -> Program {
    Program(path: "\(directory)/static/\(name)", arguments: arguments)
  }
  func c(_ name: String, _ arguments: String...) -> Program {
    Program(path: "\(directory)/c/\(name)", arguments: arguments)
  }

  /// Rounds of everything, in an order of its own each: what disturbs the machine disturbs all alike. What
  /// the run script could not build is left out, and said.
  func interleave(
    _ row: String, _ contestants: [Contestant], rounds: Int,
    _ body: (Contestant) throws -> [(metric: String, unit: String, value: Double)]
  ) throws {
    let present = contestants.filter { exists($0.program.path) }
    for contestant in contestants where !exists(contestant.program.path) {
      results.omit("\(row): \(contestant.name): \(contestant.program.path) was not built")
    }
    var values: [String: [String: [Double]]] = [:]
    var tooSlow: Set<String> = []
    var metrics: [(metric: String, unit: String)] = []
    for round in 1...rounds {
      progress("\(row): round \(round) of \(rounds)")
      for contestant in present.shuffled() where !tooSlow.contains(contestant.name) {
        let measured: [(metric: String, unit: String, value: Double)]
        do { measured = try body(contestant) } catch let error as TookTooLong {
          tooSlow.insert(contestant.name)
          results.omit("\(row): \(contestant.name): \(error)")
          continue
        }
        for (metric, unit, value) in measured {
          if !metrics.contains(where: { $0.metric == metric }) { metrics.append((metric, unit)) }
          values[contestant.name, default: [:]][metric, default: []].append(value)
        }
      }
    }
    for (metric, unit) in metrics {
      for contestant in present {
        guard let rounds = values[contestant.name]?[metric] else { continue }
        results.record(row, contestant.name, metric, unit, rounds)
      }
    }
  }
}

/// Something to be measured, with the name that the table gives it.
struct Contestant {
  let name: String
  let program: Program
}
