// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleTesting
import Synchronization
import TestSupport
import Testing

/// The real subject, without signals: those are tested in processes of their own.
@Suite struct SubjectTests {
  private let configuration = LifecycleConfiguration(
    signals: [:], exitGrace: nil, logging: .off)

  @Test func startsOnce() async throws {
    let subject = LifecycleSubject(configuration: configuration)
    try await subject.start()
    #expect(subject.state == .foreground)
    await #expect(throws: LifecycleError.alreadyStarted) { try await subject.start() }
    await #expect(throws: LifecycleError.alreadyStarted) { _ = try await subject.run() }
  }

  @Test func theSetUpComesFirstAndTheProcessGoesOn() async throws {
    let log = Log()
    let end = try await LifecycleSubject.run(
      configuration: .init(signals: [:], exitGrace: .zero, logging: .off)
    ) { lifecycle in
      lifecycle.addObserver(Listener("a", log))
      lifecycle.addForeground {
        log.add("work")
        lifecycle.terminate(exitStatus: 3)
      }
      log.add("set up")
    }
    #expect(end.exitStatus == 3)
    #expect(
      log.all.prefix(3) == ["set up", "a launch", "a foreground"] && log.all.contains("work"))
    #expect(log.all.suffix(3) == ["a background", "a save", "a terminate"])
  }

  @Test func whatTheSetUpThrowsIsThrown() async throws {
    await #expect(throws: Failure.self) {
      _ = try await LifecycleSubject.run(configuration: configuration) { _ in throw Failure() }
    }
    let set = Task {
      try await LifecycleSubject.run(configuration: configuration) {
        try await $0.clock.sleep(for: .seconds(1000))
      }
    }
    set.cancel()
    await #expect(throws: CancellationError.self) { try await set.value }
  }

  @Test func terminatedBeforeItRuns() async throws {
    let subject = LifecycleSubject(configuration: configuration)
    let log = Log()
    subject.addObserver(Listener("a", log))
    subject.terminate()
    subject.addTask { log.add("task") }
    let result = try await subject.run()
    #expect(result.exitStatus == 0)
    #expect(log.all.isEmpty)
  }

  @Test func theClockSleepsAndIsCancelled() async throws {
    let subject = LifecycleSubject(configuration: configuration)
    let clock = subject.clock
    let before = clock.now
    try await clock.sleep(for: .milliseconds(20))
    #expect(before.duration(to: clock.now) >= .milliseconds(20))
    let task = Task { try await clock.sleep(until: .distantFuture) }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test func theMockRecordsWhatIsCalled() async throws {
    let mock = MockLifecycleSubject()
    let listener = Listener("a", Log())
    mock.addObserver(listener)
    mock.observe(ShouldReload.self, owner: listener) { _, _ in }
    mock.removeObserver(listener)
    await mock.post(PostTests.CacheInvalidated(region: "eu"))
    mock.terminate()
    #expect(
      mock.calls == [
        "addObserver(Listener)", "observe(Listener)", "removeObserver(Listener)",
        "post(CacheInvalidated(region: \"eu\"))", "terminate()",
      ])
    try await mock.waitUntilSettled()
    #expect(mock.delivered.contains { $0 is WillTerminate })
  }
}

/// Objects of the user's that call the subject as they go away: their last reference must never be dropped
/// under its lock.
@Suite struct LastReferenceTests {
  private final class CallsBack: Sendable {
    let subject: any LifecycleObservable
    let log: Log
    init(_ subject: any LifecycleObservable, _ log: Log) {
      self.subject = subject
      self.log = log
    }
    func touch() {}
    deinit {
      subject.removeObserver(self)
      log.add("gone in \(subject.state)")
    }
  }

  /// The closure is the only owner, its token is cancelled in the delivery that still holds it: before its
  /// own turn on the way up, after it on the way down, and for good.
  @Test(.timeLimit(.minutes(5)), arguments: [UnixSignal.sighup, .sigusr1, .sigterm])
  func aClosureThatIsCancelledInItsOwnDelivery(_ signal: UnixSignal) async throws {
    let mock = MockLifecycleSubject()
    let log = Log()
    let tokens = Tokens()
    func observe() {
      let object = CallsBack(mock, log)
      tokens.add(mock.observeAll { _ in object.touch() })
    }
    tokens.add(
      mock.observeAll { notification in
        let isLast = notification is ShouldReload || notification is DidEnterBackground
        if isLast { tokens.clear() }
      })
    observe()
    try await mock.send(signal)
    try await eventually { !log.all.isEmpty }
    #expect(log.all.count == 1)
  }

  private final class Tokens: Sendable {
    private let tokens = Mutex<[LifecycleToken]>([])
    func add(_ token: LifecycleToken) { tokens.withLock { $0.append(token) } }
    func clear() {
      let dropped = tokens.withLock { tokens in
        defer { tokens = [] }
        return tokens
      }
      withExtendedLifetime(dropped) {}
    }
  }
}
