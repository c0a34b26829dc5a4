// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import TestSupport
import Testing

@testable import DaemonLifecycle

/// What a server can do with the end of its round, without a lifecycle.
@Suite(.timeLimit(.minutes(5))) struct WorkRoundTests {
  private let round = WorkRound()
  private let log = Log()

  @Test func whoWaitsForTheEndGoesOn() async throws {
    let task = Task { [round] in try await round.waitUntilEnding() }
    #expect(!round.isEnding)
    round.end()
    try await task.value
    try await round.waitUntilEnding()
    #expect(round.isEnding)
  }

  @Test func aDaemonsRoundIsNotEndedByItsBody() {
    let round = WorkRound(clock: MockLifecycleSubject().clock)
    round.end()
    #expect(!round.isEnding)
  }

  @Test func aCancelledWaitForTheEndThrows() async {
    let task = Task { [round] in try await round.waitUntilEnding() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  // MARK: Waits

  @Test func theEndCancelsTheWaitItWasGiven() async throws {
    let gate = Gate()
    let task = Task { [round] in
      try await round.untilEnding { () -> Int? in
        gate.open()
        try await Task.sleep(for: .seconds(1000))
        return 1
      }
    }
    await gate.wait()
    round.end()
    #expect(try await task.value == nil)
  }

  @Test func whatWasTakenInTheMomentOfTheEndIsReturned() async throws {
    let (began, goesOn) = (Gate(), Gate())
    let task = Task { [round] in
      try await round.untilEnding { () -> Int? in
        began.open()
        await goesOn.wait()
        return 7
      }
    }
    await began.wait()
    round.end()
    goesOn.open()
    #expect(try await task.value == 7)
  }

  @Test func noWaitBeginsInAnEndingRound() async throws {
    round.end()
    let value = try await round.untilEnding { [log] () -> Int? in
      log.add("began")
      return 1
    }
    #expect(value == nil && log.all.isEmpty)
  }

  @Test func anErrorOfTheWaitIsTheCallers() async {
    await #expect(throws: Failure.self) {
      try await round.untilEnding { () -> Int? in throw Failure() }
    }
    // Nobody has ended anything: it is the operation's own.
    await #expect(throws: CancellationError.self) {
      try await round.untilEnding { () -> Int? in throw CancellationError() }
    }
  }

  @Test func aCancelledCallerCancelsTheWait() async {
    let task = Task { [round] in
      try await round.untilEnding { () -> Int? in
        try await Task.sleep(for: .seconds(1000))
        return 1
      }
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  // MARK: Handlers

  /// It may use the round: where a lock were held, this would never return.
  @Test func aHandlerIsCalledOnceAndTheOperationGoesOn() async {
    await round.withEndingHandler {
      log.add("over")
    } onEnding: {
      log.add("never")
    }
    await round.withEndingHandler {
      round.end()
      round.end()
      log.add("goes on")
    } onEnding: {
      round.end()
      log.add("ending \(round.isEnding)")
    }
    // In an ending round at once.
    await round.withEndingHandler {
      log.add("operation")
    } onEnding: {
      log.add("ending")
    }
    #expect(log.all == ["over", "ending true", "goes on", "ending", "operation"])
  }

  // MARK: Sequences

  /// In the isolation of its caller, as any loop.
  @Test @MainActor func theLoopEndsWhenWhatIsBufferedIsTaken() async throws {
    let (stream, continuation) = AsyncStream<Int>.makeStream()
    for number in 1...3 { continuation.yield(number) }
    var heard: [Int] = []
    for try await number in stream.untilEnding(of: round) {
      heard.append(number)
      if number == 2 { round.end() }
    }
    #expect(heard == [1, 2, 3])
  }

  /// Whoever knows no cancellation would go on for ever.
  @Test func ofOtherSequencesNothingMoreIsTaken() async throws {
    struct Endless: AsyncSequence, AsyncIteratorProtocol, Sendable {
      var number = 0
      func makeAsyncIterator() -> Self { self }
      mutating func next() async throws -> Int? {
        number += 1
        return number
      }
    }
    var heard = 0
    for try await number in Endless().untilEnding(of: round) {
      heard = number
      if number == 2 { round.end() }
    }
    #expect(heard == 2)
  }

  @Test func anIdleLoopEndsAtOnce() async throws {
    let (stream, continuation) = AsyncStream<Int>.makeStream()
    let task = Task { [round, log] in
      for try await number in stream.untilEnding(of: round) { log.add("\(number)") }
      log.add("over")
    }
    continuation.yield(1)
    try await eventually { log.all == ["1"] }
    round.end()
    try await task.value
    #expect(log.all == ["1", "over"])
  }

  @Test func theEndAndTheErrorsOfASequenceAreItsOwn() async throws {
    let finished = AsyncStream<Int> { $0.finish() }
    // It throws no error, so its elements don't.
    for await _ in finished.untilEnding(of: round) { log.add("element") }
    #expect(log.all.isEmpty)
    let failing = AsyncThrowingStream<Int, any Error> { $0.finish(throwing: Failure()) }
    await #expect(throws: Failure.self) {
      for try await _ in failing.untilEnding(of: round) {}
    }
  }
}
