/// What outlives the process.
struct PollState: Codable, Equatable, Sendable {
  /// The number of the last poll that was printed.
  var count = 0
  /// What was read last; `nil` as long as every poll has failed.
  var lastValue: String?

  /// A count that was never written by us: below zero, or so high that it can't go on.
  var isPlausible: Bool { (0..<Int.max / 2).contains(count) }
}
