// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle

/// One of the two instances. Each follows the ledger all the time; the one in the foreground writes to it.
///
/// What a replica knows comes from the ledger alone, its own lines included. So the one that takes over has
/// little to catch up on, and goes on exactly where the other has stopped.
actor Replica {
  private let name: String
  private let path: String
  private let ledger: Ledger
  private let say: @Sendable (String) -> Void
  /// The number of the ledger's last line: what a daemon of yours would keep warm, a cache or an index.
  private(set) var last = 0

  init(
    name: String, ledger path: String, say: @escaping @Sendable (String) -> Void
  ) throws {
    (self.name, self.path, self.say) = (name, path, say)
    ledger = try Ledger(path)
  }

  /// Has it work in a daemon.
  nonisolated func work(every interval: Duration, in lifecycle: any LifecycleObservable) {
    // In the background, too: this is what makes it a hot standby.
    lifecycle.addTask(name: "follower", readyWithin: .seconds(60)) { round in
      try await self.follow(every: interval, in: lifecycle, round)
    }
    // Begun by each WillEnterForeground, cancelled and waited for by each DidEnterBackground.
    lifecycle.addForeground(name: "leader") { try await self.lead(every: interval, in: lifecycle) }
  }

  private func follow(
    every interval: Duration, in lifecycle: any LifecycleObservable, _ round: ForegroundRound
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

  private func catchUp() throws {
    for line in try ledger.newLines() {
      guard line.hasPrefix("\(last + 1) ") else { throw notALedger(line) }
      last += 1
    }
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
