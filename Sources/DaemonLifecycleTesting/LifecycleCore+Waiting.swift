// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd
import Synchronization

private typealias PendingError = MockLifecycleSubject.PendingError

// For tests: waits for a core, and moves of its clock.
extension LifecycleCore {
  /// The harness, also of a core that a test has made itself.
  private var bench: Harness {
    guard let bench = harness as? Harness else { preconditionFailure("A core without a harness.") }
    return bench
  }

  private func noteSleepers() { bench.sleepers.store(sleeperCount, ordering: .relaxed) }

  package func endSetUp() { bench.endSetUp(of: self) }

  /// Returns when nothing is being delivered or waits to be, except behind a hold. Throws the errors of `wait`.
  package nonisolated(nonsending) func untilIdle(
    patience: Duration = .seconds(10), for call: String = "untilIdle()"
  ) async throws(MockLifecycleSubject.PendingError) {
    endSetUp()
    try await wait(patience, call, sleeping: nil)
  }

  /// Returns when `count` tasks or more sleep on the clock. Throws the errors of `wait`.
  package nonisolated(nonsending) func waitUntilSleeping(
    _ count: Int, patience: Duration = .seconds(10)
  ) async throws(MockLifecycleSubject.PendingError) {
    endSetUp()
    do {
      try await wait(patience, "waitUntilSleeping(\(count))", sleeping: count)
      noteSleepers()
    } catch {
      let found = "\(sleeperCount) of \(count) sleep on the mock's clock"
      throw PendingError(reason: error.reason, pending: [found] + error.pending)
    }
  }

  /// Returns when the waiter is ended. Throws when no hook begins or ends for `patience` of real time meanwhile, or
  /// when the task is cancelled.
  private nonisolated(nonsending) func wait(
    _ patience: Duration, _ call: String, sleeping count: Int?
  ) async throws(MockLifecycleSubject.PendingError) {
    let waiter = Sleeper()
    bench.add(waiter, whenSleeping: count)
    look()
    if waiter.hasEnded { return }
    let alarm = Task.detached { await self.end(waiter, after: patience, call) }
    defer { alarm.cancel() }
    do {
      try await waiter.wait { waiter.end(throwing: CancellationError()) }
    } catch let error as PendingError {
      throw error
    } catch {
      throw PendingError(reason: "The task that waited in \(call) was cancelled.", pending: pending)
    }
  }

  /// Ends a wait when no hook begins or ends, and no task of the test moves the clock, for a while.
  ///
  /// The while is ten sleeps on Swift's pool, so it takes longer where the pool is busy with other tests: a slow machine
  /// is no failure.
  private func end(_ waiter: Sleeper, after patience: Duration, _ call: String) async {
    var (seen, sleeps) = ((progress, bench.steps.load(ordering: .relaxed)), 0)
    while sleeps < 10 {
      do { try await Task.sleep(for: min(patience, .seconds(86_400)) / 10) } catch { return }
      let now = (progress, bench.steps.load(ordering: .relaxed))
      sleeps = now == seen ? sleeps + 1 : 0
      seen = now
    }
    let reason =
      "\(call) timed out: no hook has begun or ended in \(patience.forReading) of real time."
    let sleeping =
      call.hasPrefix("send") && sleeperCount > 0
      ? ["the mock's clock stands still: inject(_:) rather than send(_:), and then advance(by:)"]
      : []
    waiter.end(throwing: PendingError(reason: reason, pending: pending + sleeping))
  }

  /// Moves the virtual clock from timer to timer. Tasks that a timer wakes run before the next one.
  package nonisolated(nonsending) func advance(by duration: Duration) async {
    endSetUp()
    let target = now.advanced(by: duration)
    // A resume may have begun work that has yet to sleep.
    await untilQuiet {
      // A pause ends sleeps.
      let isPaused = rest.isIdle && lifecycleState != .foreground
      return isPaused ? 0 : bench.sleepers.load(ordering: .relaxed)
    }
    while let next = nextDeadline(until: target) {
      let sleeping = sleeperCount
      moveClock(to: next)
      timePassed()
      await untilQuiet { sleeping }
    }
    moveClock(to: target)
    await untilQuiet()
    noteSleepers()
  }

  /// Returns when hooks have run as far as they can, and woken tasks sleep again, as a loop does.
  ///
  /// Other work of a woken task on the cooperative pool can't be observed. The task has some turns of the pool, and up
  /// to 0.2 s to sleep again; longer when the pool has other work, since each turn waits for that. A hook that blocks
  /// its thread has the same time.
  ///
  /// - Parameter count: How many tasks are to sleep.
  private nonisolated(nonsending) func untilQuiet(sleeping count: () -> Int = { 0 }) async {
    for _ in 0..<20 { await giveTurn(.background) }
    var turns = 0
    while !isQuiet || sleeperCount < count(), turns < 50 {
      try? await Task.sleep(for: .milliseconds(4))
      await giveTurn(.medium)
      turns += 1
    }
  }

  private nonisolated(nonsending) func giveTurn(_ priority: TaskPriority) async {
    bench.steps.add(1, ordering: .relaxed)
    await Task.detached(priority: priority) { await Task.yield() }.value
  }
}
