// SPDX-License-Identifier: Apache-2.0
extension [Double] {
  /// The nearest-rank quantile; 0 of nothing.
  package func quantile(_ q: Double) -> Double {
    guard !isEmpty else { return 0 }
    let rank = Int((q * Double(count)).rounded(.up)) - 1
    return sorted()[Swift.min(count - 1, Swift.max(0, rank))]
  }

  package var median: Double {
    guard !isEmpty else { return 0 }
    let sorted = sorted()
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2
  }
}

/// Three figures that count, without an exponent.
package func short(_ value: Double) -> String {
  let magnitude = abs(value)
  let digits = magnitude >= 100 || magnitude == 0 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 3
  let scale = [1.0, 10, 100, 1000][digits]
  let scaled = Int((magnitude * scale).rounded())
  let text = String(scaled / Int(scale))
  let sign = value < 0 && scaled != 0 ? "-" : ""
  guard digits > 0 else { return sign + text }
  let fraction = String(scaled % Int(scale))
  return sign + text + "." + String(repeating: "0", count: digits - fraction.count) + fraction
}
