// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle

/// The server's loop: accepts until its round in the foreground is ending, with a child task for each connection.
///
/// Idle connections end at once, and a request under way is answered: nothing is cancelled, so code that answers knows
/// nothing of this. The scope of the tasks waits for those who are being served; what takes longer than the limit of
/// `foreground(draining:)` is cut off there.
struct Server: Sendable {
  let listener: Socket
  private let clock: LifecycleClock
  private let warn: @Sendable (String) -> Void

  init(_ listener: Socket, clock: LifecycleClock, warn: @escaping @Sendable (String) -> Void) {
    (self.listener, self.clock, self.warn) = (listener, clock, warn)
  }

  /// Returns when the round is ending and the last connection has ended.
  func serve(_ round: WorkRound) async throws {
    // Discarding: it keeps nothing of connections that have ended.
    try await withThrowingDiscardingTaskGroup { group in
      while let client = try await round.untilEnding({ try await nextClient() }) {
        group.addTask { await converse(with: client, round) }
      }
    }
  }

  private func nextClient() async throws -> Socket {
    var problem: String?
    while true {
      do {
        if let client = try listener.nextClient() { return client }
        try await listener.wait(until: .readable)
      } catch let error as SystemError {
        // Out of descriptors, for instance, which those who leave will give back. No reason to end the others. Once for
        // each client that waits.
        if problem != "\(error)" { warn("\(error)") }
        problem = "\(error)"
        try await clock.sleep(for: .milliseconds(100))
      }
    }
  }

  private func converse(with client: Socket, _ round: WorkRound) async {
    defer { client.end() }
    do {
      // The client may send unanswered lines again elsewhere: the connection ends after the last answer.
      for try await line in Lines(of: client).untilEnding(of: round) {
        try await client.sendLine(answer(to: line))
      }
    } catch is CancellationError {
    } catch { warn("\(error)") }
  }

  // MARK: What it serves

  private func answer(to line: String) async throws -> String {
    let words = line.split(separator: " ")
    switch (words.first, words.dropFirst().first.flatMap { Double($0) }) {
    case ("time", nil) where words.count == 1: return Self.utcTime()
    case ("wait", let seconds?) where words.count == 2 && (0...60).contains(seconds):
      try await clock.sleep(for: .seconds(seconds))
      return "waited \(words[1]) s"
    default: return "error: say \"time\", or \"wait\" and a number of seconds up to 60"
    }
  }

  /// As ISO 8601 has it: `2026-11-22T17:00:20Z`.
  private static func utcTime() -> String {
    var (now, parts) = (time(nil), tm())
    gmtime_r(&now, &parts)
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 32) { text in
      strftime(text.baseAddress!, text.count, "%FT%TZ", &parts)
      return String(cString: text.baseAddress!)
    }
  }
}
