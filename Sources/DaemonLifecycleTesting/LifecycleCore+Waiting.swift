// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd

// How a test waits for a core, and moves its clock.
extension LifecycleCore {
  /// Returns when nothing is being delivered and nothing waits to be, except behind a hold. Throws as `wait`.
  package nonisolated(nonsending) func untilIdle(patience: Duration = .seconds(10))
    async throws(ImpatienceError)
  {
    endSetUp()
    try await wait(patience) { endWhenIdle($0) }
  }

  /// Returns when `count` tasks or more sleep on the clock. Throws as `wait`.
  package nonisolated(nonsending) func untilSleeping(
    _ count: Int, patience: Duration = .seconds(10)
  ) async throws(ImpatienceError) {
    endSetUp()
    try await wait(patience) { endWhenSleeping(count, $0) }
  }

  /// Returns when the waiter is ended. Throws when no hook begins or ends for `patience` of real time meanwhile, or when
  /// the task is cancelled.
  private nonisolated(nonsending) func wait(
    _ patience: Duration, for register: (Sleeper) -> Void
  ) async throws(ImpatienceError) {
    let waiter = Sleeper()
    register(waiter)
    if waiter.hasEnded { return }
    let alarm = PatienceAlarm(patience, self, waiter)
    defer { alarm.cancel() }
    do {
      try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { _ = waiter.wait($0) }
      } onCancel: {
        waiter.end(throwing: CancellationError())
      }
    } catch let error as ImpatienceError {
      throw error
    } catch {
      throw ImpatienceError(after: nil, pending: pending)
    }
  }

  /// Moves the virtual clock from timer to timer, letting what each wakes run before the next.
  package nonisolated(nonsending) func advance(by duration: Duration) async {
    endSetUp()
    let target = timeNow.advanced(by: duration)
    await untilQuiet(sleeping: sleeperCount)
    while let next = nextDeadline(until: target) {
      let sleeping = sleeperCount
      moveClock(to: next)
      timePassed()
      await untilQuiet(sleeping: sleeping)
    }
    moveClock(to: target)
    await untilQuiet(sleeping: sleeperCount)
  }

  /// Hooks have run as far as they can, and what was woken sleeps again, as a loop does.
  ///
  /// What else a woken task does on the cooperative pool can't be seen: it is given turns, and up to a
  /// fifth of a second to sleep again; longer when the pool has other work, since each turn waits behind it. A hook
  /// that blocks its thread is given as long.
  private nonisolated(nonsending) func untilQuiet(sleeping count: Int) async {
    for _ in 0..<20 { await giveTurn(.background) }
    var turns = 0
    while !isQuiet || sleeperCount < count, turns < 50 {
      try? await Task.sleep(for: .milliseconds(4))
      await giveTurn(.medium)
      turns += 1
    }
  }

  private nonisolated(nonsending) func giveTurn(_ priority: TaskPriority) async {
    noteStep()
    await Task.detached(priority: priority) { await Task.yield() }.value
  }
}
