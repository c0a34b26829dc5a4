// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// A sequence of ticks of a subject's clock. Its elements are the numbers of the intervals, from 0.
struct LifecycleTicks: AsyncSequence, Sendable {
  let clock: LifecycleClock
  let interval: Duration
  let spread: Duration

  /// Makes an iterator, whose first tick is due at once, or at random within the spread.
  func makeAsyncIterator() -> Iterator {
    let most = Double(spread.saturatedNanoseconds)
    let delay = most > 0 ? Int64(most * clock.keeper.randomShare) : 0
    return Iterator(ticks: self, start: clock.now.advanced(by: .nanoseconds(delay)))
  }

  struct Iterator: AsyncIteratorProtocol {
    let ticks: LifecycleTicks
    let start: LifecycleClock.Instant
    fileprivate var next = 0

    /// Waits for the next tick, and returns the number of its interval.
    ///
    /// - Throws: `CancellationError` when the task is cancelled or the subject is deallocated.
    mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(CancellationError) -> Int? {
      let step = Swift.max(1, ticks.interval.saturatedNanoseconds)
      let passed = Int(start.duration(to: ticks.clock.now).saturatedNanoseconds / step)
      // On time, it is the tick that is due, or the one to wait for; late, the last one that was missed.
      let tick = Swift.max(next, passed)
      let due = start.advanced(by: .nanoseconds(step) * tick)
      let round = WorkRound.current
      round?.beginWait()
      defer { round?.endWait() }
      do { try await ticks.clock.sleep(until: due) } catch { throw CancellationError() }
      next = tick + 1
      round?.reportProgress()
      return tick
    }
  }
}
