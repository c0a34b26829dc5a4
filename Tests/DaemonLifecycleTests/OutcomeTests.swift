// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Deadlines, outcomes and reports, on the mock's clock.
@Suite struct OutcomeTests {
  let log = Log()

  /// Nor does one that is stuck in a stop's save take the time of the others.
  @Test func aStuckSaverDoesNotTakeTheOthersChance() async throws {
    let mock = MockLifecycleSubject(
      configuration: .init(hookTimeout: .seconds(30), stopTimeout: .seconds(10), logging: .off))
    let gate = Gate()
    mock.addObserver(Listener("saver", log))
    mock.addObserver(Scripted(save: gate.hold))
    try await mock.waitUntilSettled()
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(10))
    try await mock.waitUntilSettled()
    #expect(log.all.contains("saver save") && mock.exitResult?.exitStatus == 124)
    gate.open()
  }

  @Test func aHookThatDoesNotEndIsAbandoned() async throws {
    let mock = MockLifecycleSubject()
    let gate = Gate()
    let other = Listener("other", log)
    mock.addObserver(other)
    mock.addObserver(
      Scripted(
        background: { notification in
          await gate.wait()
          log.add("current: \(notification.context.isCurrent)")
        }, save: { _ in log.add("stuck saves") }))
    try await mock.waitUntilSettled()
    log.clear()
    mock.inject(.sigusr1)
    await mock.advance(by: .seconds(10))
    #expect(log.all.isEmpty)
    // The main actor has answered, or nobody could say that the hook does not wait for it.
    await MainActor.run {}
    await mock.advance(by: .seconds(1))
    try await mock.waitUntilSettled()
    // It is asked to save all the same, once.
    #expect(log.all == ["other background", "stuck saves", "other save"])
    let report = try await mock.waitUntilSettled()
    #expect(
      report.problems.map(\.description) == [
        "Scripted, DidEnterBackground: abandoned after 11 s: did not end"
      ])
    #expect(throws: MockLifecycleSubject.PendingError.self) { try mock.checkNothingPending() }

    // Its other hooks are skipped while it is busy, and it hears what it missed when it is free.
    let resumed = try await mock.send(.sigusr2)
    #expect(
      resumed.problems.map(\.description) == [
        "Scripted, WillEnterForeground: skipped: busy with an abandoned hook"
      ])
    let reports = mock.reports()
    gate.open()
    for await report in reports where report.entries.contains(where: \.outcome.isCompleted) {
      break
    }
    #expect(log.all.contains("current: false"))
    try mock.checkNothingPending()
  }

  @Test(.timeLimit(.minutes(5)))
  func anActorThatIsBusyNeverBeginsAHookThatWasAbandonedAndIsToldAgain() async throws {
    let mock = MockLifecycleSubject()
    let busy = BusyActor(log)
    mock.addObserver(busy)
    try await mock.waitUntilSettled()
    let report = Log()
    // On a thread of its own: the pool's are few, and other tests need them.
    let thread = HookExecutor()
    let occupation = Task(executorPreference: thread) { await busy.occupy { !report.all.isEmpty } }
    await busy.isIn.wait()
    mock.inject(.sigusr1)
    await mock.advance(by: .seconds(11))
    let problems = try await mock.waitUntilSettled().problems.map(\.description)
    report.add("done")
    await occupation.value
    thread.close()
    #expect(
      problems == ["BusyActor, DidEnterBackground: abandoned after 11 s: never got its executor"])
    // What was enqueued on the actor before this is through when this runs; its task is then on its way back.
    await busy.run {}
    while log.all.isEmpty, !Task.isCancelled { try? await Task.sleep(for: .milliseconds(1)) }
    try await mock.waitUntilSettled()
    // The hook never began, so the actor has missed the pause: it is notified again, once, by a call of its own.
    #expect(log.all == ["began"])
  }
}

/// An actor that can be kept busy, so that its hook has to wait for it.
private actor BusyActor: BackgroundObserver {
  private let log: Log
  let isIn = Gate()
  init(_ log: Log) { self.log = log }

  /// Holds the actor, and its thread, until the condition is met.
  func occupy(until isOver: @Sendable () -> Bool) {
    isIn.open()
    while !isOver() { usleep(1000) }
  }

  func run(_ body: @Sendable () -> Void) { body() }
  func didEnterBackground(_ notification: DidEnterBackground) { log.add("began") }
}
