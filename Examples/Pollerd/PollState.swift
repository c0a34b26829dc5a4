/// What outlives the process.
struct PollState: Codable, Equatable, Sendable {
  /// The number of the last poll that was printed.
  var count = 0
  /// What that poll has read; `nil` when it failed, and before the first.
  var lastValue: String?

  /// A count that was never written by us: below zero, or so high that it can't go on.
  var isPlausible: Bool { (0..<Int.max / 2).contains(count) }
}
