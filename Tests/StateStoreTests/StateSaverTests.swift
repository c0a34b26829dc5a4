// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle
@testable import DaemonLifecycleState

/// The observer that saves, on the mock and its clock.
@Suite("State: the observer") struct StateSaverTests {
  private let mock = MockLifecycleSubject()
  private let memory = StateMemory()
  private let value = Value()

  private final class Value: Sendable {
    private let state = Mutex((byte: UInt8(1), asked: 0))
    var byte: UInt8 {
      get { state.withLock { $0.byte } }
      set { state.withLock { $0.byte = newValue } }
    }
    var asked: Int { state.withLock { $0.asked } }
    func bytes() -> [UInt8] {
      state.withLock {
        $0.asked += 1
        return [$0.byte]
      }
    }
  }

  private func saved(every interval: Duration? = nil) throws
    -> StateSaver
  {
    let value = value
    return mock.addStateSaver(try StateStore(memory: memory), every: interval) { value.bytes() }
  }

  private func generation(_ saved: StateSaver) throws -> UInt64 {
    try saved.store.load()?.generation ?? 0
  }

  @Test func savesWhenTheLifecycleSaysSo() async throws {
    let saved = try saved()
    try await mock.send(.sigusr1)
    #expect(try saved.store.load()?.bytes == [1])
    value.byte = 2
    try await mock.send(.sighup)
    #expect(try saved.store.load()?.bytes == [2])
    value.byte = 3
    let report = try await mock.send(.sigterm)
    #expect(report.problems.isEmpty)
    #expect(try saved.store.load()?.bytes == [3])
    #expect(try generation(saved) == 3)
    try mock.checkNothingPending()
  }

  /// Of several stores the report says which one has not saved.
  @Test func itIsNamedAfterItsStore() async throws {
    for name in ["state", "orders"] {
      let store = try StateStore(memory: memory, name: name)
      mock.addStateSaver(store) { throw StateError.unusable("x") }
    }
    let save = try await mock.send(.saveState)
    #expect(Set(save.problems.map(\.observer)) == ["StateSaver", "StateSaver orders"])
  }

  @Test func whatHasNotChangedIsNotSavedAgain() async throws {
    let saved = try saved()
    for _ in 0..<4 { try await mock.send(.sighup) }
    #expect(value.asked == 4)
    #expect(try generation(saved) == 1)
  }

  @Test func savesEveryIntervalOnTheSubjectsClock() async throws {
    let saved = try saved(every: .seconds(60))
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(59))
    #expect(value.asked == 0)
    await mock.advance(by: .seconds(1))
    try await mock.waitUntilSettled()
    #expect(try saved.store.load()?.bytes == [1])
    value.byte = 2
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(60))
    try await mock.waitUntilSettled()
    #expect(try saved.store.load()?.bytes == [2])
    try await mock.send(.sigterm)
    // The timer has ended with the daemon.
    try await eventually { (try? mock.checkNothingPending()) != nil }
    withExtendedLifetime(saved) {}
  }

  @Test func withoutAnIntervalThereIsNoTimer() async throws {
    let saved = try saved()
    try await mock.waitUntilSettled()
    try mock.checkNothingPending()
    withExtendedLifetime(saved) {}
  }

  @Test func oneThatIsRemovedEndsItsTimer() async throws {
    var saved: StateSaver? = try saved(every: .seconds(60))
    try await mock.waitUntilSleeping()
    if let saved { mock.removeObserver(saved) }
    saved = nil
    try await eventually { (try? mock.checkNothingPending()) != nil }
    // And lets go of the lock.
    try await eventually { (try? StateStore(memory: memory)) != nil }
  }

  @Test func aFailureIsInTheReport() async throws {
    let saved = try saved()
    memory.failure = ENOSPC
    let report = try await mock.send(.sigterm)
    #expect(report.problems.count == 1)
    #expect("\(report)".contains("Could not save the state in (memory): No space left on device."))
    #expect(mock.exitResult?.exitStatus == 70)
    withExtendedLifetime(saved) {}
  }

  @Test func anErrorOfTheClosureLeavesTheOldState() async throws {
    struct NotNow: Error {}
    let store = try StateStore(memory: memory)
    try store.save([9])
    let saved = mock.addStateSaver(store) { throw NotNow() }
    let report = try await mock.send(.sigusr1)
    #expect(report.problems.count == 1)
    #expect(try store.load()?.bytes == [9])
    withExtendedLifetime(saved) {}
  }

  /// A saver whose first save waits until it is released; each ends with `last`.
  private func waitingSaver(
    _ last: @escaping @Sendable () async throws -> Void = {}
  ) throws -> (saved: StateSaver, release: AsyncStream<Void>.Continuation) {
    let (released, release) = AsyncStream.makeStream(of: Void.self)
    let value = value
    let saved = mock.addStateSaver(try StateStore(memory: memory)) {
      let bytes = value.bytes()
      if value.asked == 1 { for await _ in released { break } }
      try await last()
      return bytes
    }
    return (saved, release)
  }

  /// Ten requests while a save is on its way share the next one, which begins after all of them.
  @Test func requestsShareASave() async throws {
    let (saved, release) = try waitingSaver()
    let first = Task { try await saved.save() }
    try await eventually { [value] in value.asked == 1 }
    value.byte = 2
    let others = (0..<10).map { _ in Task { try await saved.save() } }
    try await eventually { saved.waitingForTesting >= 10 }
    release.yield()
    #expect(try await first.value)
    for other in others { #expect(try await other.value) }
    #expect(value.asked == 2)
    #expect(try saved.store.load()?.bytes == [2])
    #expect(saved.waitingForTesting == 0)
  }

  /// One who is cancelled takes nobody along.
  @Test func aCancelledSaveIsNotTheOthers() async throws {
    let (saved, release) = try waitingSaver { try Task.checkCancellation() }
    let first = Task { try await saved.save() }
    try await eventually { [value] in value.asked == 1 }
    let waiting = Task { try await saved.save() }
    let other = Task { try await saved.save() }
    try await eventually { saved.waitingForTesting >= 2 }
    waiting.cancel()
    await #expect(throws: CancellationError.self) { try await waiting.value }
    first.cancel()
    release.yield()
    await #expect(throws: CancellationError.self) { try await first.value }
    #expect(try await other.value)
    #expect(try saved.store.load()?.bytes == [1])
  }

  /// How those ended who waited for the first save and shared the second, which fails with `error`. If it is made again,
  /// all others wait for that.
  private func ends(
    of sharers: Int, isRetried: Bool = false, _ error: @escaping @Sendable () -> any Error
  ) async throws -> [Result<Bool, any Error>] {
    let (releasedAgain, releaseAgain) = AsyncStream.makeStream(of: Void.self)
    let value = value
    let (saved, release) = try waitingSaver {
      if value.asked == 2 { throw error() }
      if value.asked == 3 { for await _ in releasedAgain { break } }
    }
    let first = Task { try await saved.save() }
    try await eventually { value.asked == 1 }
    let tasks = (0..<sharers).map { _ in Task { try await saved.save() } }
    try await eventually { saved.waitingForTesting >= sharers }
    release.yield()
    _ = try await first.value
    if isRetried {
      try await eventually { value.asked == 3 && saved.waitingForTesting == sharers - 2 }
      releaseAgain.yield()
    }
    var results: [Result<Bool, any Error>] = []
    for task in tasks { results.append(await task.result) }
    return results
  }

  /// Nobody tries again what has failed for all.
  @Test func aFailureIsAllTheirsWhoShareTheSave() async throws {
    struct NotNow: Error {}
    for end in try await ends(of: 2, { NotNow() }) {
      #expect(throws: NotNow.self) { try end.get() }
    }
    #expect(value.asked == 2)
  }

  /// Of those who share a save the one is cancelled that makes it: the others share one more.
  @Test(arguments: [2, 3, 10])
  func aCancelledSharerLeavesTheSaveToTheOthers(_ sharers: Int) async throws {
    let ends = try await ends(of: sharers, isRetried: true) {
      withUnsafeCurrentTask { $0?.cancel() }
      return CancellationError()
    }
    #expect(ends.count { (try? $0.get()) != nil } == sharers - 1)
    #expect(value.asked == 3)
  }
}
