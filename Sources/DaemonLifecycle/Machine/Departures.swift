// SPDX-License-Identifier: Apache-2.0
/// The number of observers that were deallocated without being removed, by name. Its size depends on the number of
/// names only.
struct Departures: Sendable {
  private(set) var counts: [ObserverName: Int] = [:]

  var isEmpty: Bool { counts.isEmpty }

  mutating func add(_ name: ObserverName, _ count: Int = 1) {
    counts[name, default: 0] += count
  }

  mutating func add(_ others: Departures) { counts.merge(others.counts, uniquingKeysWith: +) }

  /// The sentence for a log, the most frequent names first: `3 observers have gone away: Connection (×2), Poller`.
  var sentence: String {
    let total = counts.values.reduce(0, +)
    let names = counts.map { (name: "\($0)", count: $1) }
      .sorted { ($1.count, $0.name) < ($0.count, $1.name) }
    let shown = names.prefix(8).map { $0.count == 1 ? $0.name : "\($0.name) (×\($0.count))" }
    let rest = names.count > shown.count ? " and \(names.count - shown.count) more" : ""
    let subject = total == 1 ? "1 observer has" : "\(total) observers have"
    return "\(subject) gone away without being removed: \(shown.joined(separator: ", "))\(rest)"
  }
}
