// SPDX-License-Identifier: Apache-2.0
import Measuring

/// One contestant's number: the median of its rounds, and their quartiles as spread.
struct Measurement {
  let row: String
  let contestant: String
  let metric: String
  let unit: String
  let median: Double
  let low: Double
  let high: Double
  let rounds: [Double]
}

/// One goal, and whether it was met.
struct Verdict {
  let row: String
  let goal: String
  let measured: Double
  let bound: Double
  let unit: String
  let isMet: Bool
}

/// All that was measured, in the order in which it was.
final class Results {
  private(set) var measurements: [Measurement] = []
  private(set) var verdicts: [Verdict] = []
  /// What could not be measured, and why: nothing is dropped silently.
  private(set) var omissions: [String] = []

  func record(
    _ row: String, _ contestant: String, _ metric: String, _ unit: String, _ rounds: [Double]
  ) {
    measurements.append(
      Measurement(
        row: row, contestant: contestant, metric: metric, unit: unit, median: rounds.median,
        low: rounds.quantile(0.25), high: rounds.quantile(0.75), rounds: rounds))
  }

  /// What a reader should know beside the goals.
  private(set) var notes: [String] = []
  func note(_ what: String) { notes.append(what) }

  private(set) var hasFailed = false
  /// A row that could not be measured to its end.
  func fail(_ what: String) {
    hasFailed = true
    omit(what)
  }

  func omit(_ what: String) { omissions.append(what) }

  func measurement(_ row: String, _ contestant: String, _ metric: String) -> Measurement? {
    measurements.first { $0.row == row && $0.contestant == contestant && $0.metric == metric }
  }

  /// The median over the rounds of the ratio in each, so that what slows a whole round down cancels.
  func ratio(_ row: String, _ metric: String, _ contestant: String, to other: String) -> Double? {
    guard let a = measurement(row, contestant, metric), let b = measurement(row, other, metric)
    else { return nil }
    return zip(a.rounds, b.rounds).map { $0 / $1 }.median
  }

  /// States a goal that a value must not exceed.
  func judge(
    _ row: String, _ goal: String, _ measured: Double?, atMost bound: Double, _ unit: String
  ) {
    guard let measured else { return omit("\(row): \(goal): a contestant is missing") }
    verdicts.append(
      Verdict(
        row: row, goal: goal, measured: measured, bound: bound, unit: unit,
        isMet: measured <= bound))
  }

  func judgeRatio(
    _ row: String, _ metric: String, _ contestant: String, to other: String, atMost bound: Double
  ) {
    judge(
      row, "\(metric): \(contestant) ≤ \(short(bound)) × \(other)",
      ratio(row, metric, contestant, to: other), atMost: bound, "×")
  }
}
