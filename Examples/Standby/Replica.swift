// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleLease

/// One of the two instances. Each follows the ledger all the time; the one in the foreground writes to it.
///
/// What a replica knows comes from the ledger alone, its own lines included. So the one that takes over has
/// little to catch up on, and goes on exactly where the other has stopped.
actor Replica {
  private let name: String
  private let path: String
  private let ledger: Ledger
  /// What decides which instance works, unless systemd or an operator does.
  private let lease: Lease?
  private let say: @Sendable (String) -> Void
  /// The number of the ledger's last line: what a daemon of yours would keep warm, a cache or an index.
  private(set) var last = 0
  /// The highest token with which a line was written.
  private var fence: UInt64 = 0

  init(
    name: String, ledger path: String, lease: Lease? = nil,
    say: @escaping @Sendable (String) -> Void
  ) throws {
    (self.name, self.path, self.lease, self.say) = (name, path, lease, say)
    ledger = try Ledger(path)
  }

  /// Has it work in a daemon.
  nonisolated func work(every interval: Duration, in lifecycle: any LifecycleObservable) {
    // In the background, too: this is what makes it a hot standby.
    lifecycle.addTask(name: "follower", readyWithin: .seconds(60)) { round in
      try await self.follow(every: interval, in: lifecycle, round)
    }
    // Begun by each WillEnterForeground, cancelled and waited for by each DidEnterBackground.
    lifecycle.addForeground(name: "leader", mayReturn: lease != nil) {
      if let lease = self.lease {
        try await self.lead(with: lease, every: interval, in: lifecycle)
      } else {
        try await self.lead(every: interval, in: lifecycle)
      }
    }
  }

  private func follow(
    every interval: Duration, in lifecycle: any LifecycleObservable, _ round: WorkRound
  ) async throws {
    try catchUp()
    say("\(name) stands by at \(last)")
    // Nobody leads before.
    round.reportReady()
    for try await _ in lifecycle.ticks(every: interval) { try catchUp() }
  }

  private func lead(every interval: Duration, in lifecycle: any LifecycleObservable) async throws {
    // The lifecycle decides which one should work. Only the lock shows that the other has stopped, which may take it
    // a while.
    while try !ledger.lock() { try await lifecycle.clock.sleep(for: .milliseconds(10)) }
    defer { ledger.unlock() }
    try catchUp()
    try mend()
    say("\(name) leads from \(last + 1)")
    defer { say("\(name) stands by at \(last)") }
    for try await _ in lifecycle.ticks(every: interval) {
      try ledger.append("\(last + 1) \(name)")
      try catchUp()
    }
  }

  // MARK: With a lease

  /// Leads as long as nobody with a higher token has. The lease alone does not keep an old leader from writing: one that was
  /// stopped, or whose network was cut, hears late that it was lost. So what is shared checks the token with each write.
  private func lead(
    with lease: Lease, every interval: Duration, in lifecycle: any LifecycleObservable
  ) async throws {
    // Lost since: the pause is on its way.
    guard let line = lease.token else { return }
    guard let token = UInt64(line) else { throw NoToken(line: line) }
    say("\(name) leads with the token \(token)")
    defer { say("\(name) stands by at \(last)") }
    for try await _ in lifecycle.ticks(every: interval) {
      // For one line only: a leader that was stopped meanwhile must not have it.
      while try !ledger.lock() { try await lifecycle.clock.sleep(for: .milliseconds(1)) }
      guard try write(with: token) else { continue }
      say("\(name) is refused with the token \(token): \(fence) has written")
      // As a rule the loss of the lease is on its way. If not, the elector has gone back, and another token is needed.
      try await lifecycle.clock.sleep(for: .seconds(10))
      throw Refused(token: token, fence: fence)
    }
  }

  /// Writes a line, unless a higher token has: then it returns true. What a database does in a transaction.
  private func write(with token: UInt64) throws -> Bool {
    defer { ledger.unlock() }
    try catchUp()
    if fence > token { return true }
    try mend()
    try ledger.append("\(last + 1) \(name) \(token) \(Ledger.milliseconds)")
    try catchUp()
    return false
  }

  // MARK: The ledger

  private func catchUp() throws {
    while case let lines = try ledger.newLines(), !lines.isEmpty {
      for line in lines { try follow(line) }
    }
  }

  private func follow(_ line: String) throws {
    guard line.hasPrefix("\(last + 1) ") else { throw notALedger(line) }
    last += 1
    // "7 a", or "7 a 12 1764331200000" with a token.
    let words = line.split(separator: " ")
    if words.count > 3 { fence = max(fence, UInt64(words[words.count - 2]) ?? 0) }
  }

  /// Removes what a writer that was cut off has left of its line. No one else writes meanwhile: we have the lock.
  private func mend() throws {
    let half = try ledger.halfLine()
    let beginning = "\(last + 1) "
    guard beginning.hasPrefix(half) || half.hasPrefix(beginning) else { throw notALedger(half) }
    try ledger.dropHalfLine()
  }

  private func notALedger(_ line: String) -> NotALedger {
    NotALedger(path: path, line: line, number: last + 1)
  }
}

/// Called on the actor: one that hangs in a system call does not answer, so the watchdog ends the process.
extension Replica: HealthObserver {
  func checkHealth(_ notification: CheckHealth) {}
}

/// A file that is no ledger, and is not written to.
struct NotALedger: Error, CustomStringConvertible {
  let path: String
  let line: String
  let number: Int
  var description: String {
    "\(path) is no ledger: line \(number) is \(line.prefix(60).debugDescription)."
  }
}

/// The lease is held, and what it protects says that another one's is newer.
struct Refused: Error, CustomStringConvertible {
  let token, fence: UInt64
  var description: String { "The token \(token) is lower than \(fence), which has written." }
}

/// An elector's line without a number, with which nothing can be fenced.
struct NoToken: Error, CustomStringConvertible {
  let line: String
  var description: String {
    "The elector has printed no number: \(line.prefix(60).debugDescription)."
  }
}
