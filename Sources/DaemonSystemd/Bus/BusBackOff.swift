/// How long to wait before the next attempt to connect: doubling from the first delay to the longest.
struct BusBackOff: Sendable {
  let first: Duration
  let longest: Duration
  /// What the next attempt waits; at least `first` and at most `longest`, unless `longest` is less.
  private var next: Duration

  init(first: Duration, longest: Duration) {
    // A delay of nothing would be a loop that never rests.
    self.first = max(first, .milliseconds(1))
    self.longest = max(longest, self.first)
    next = self.first
  }

  /// The delay before the next attempt; the one after that waits twice as long.
  mutating func take() -> Duration {
    defer { next = min(next * 2, longest) }
    return next
  }

  /// A connection has ended. Only one that lasted longer than the delay before it begins anew: a bus that
  /// welcomes and hangs up again is asked ever less often.
  mutating func connectionLasted(_ duration: Duration) {
    if duration > next { next = first }
  }
}
