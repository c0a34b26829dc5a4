// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleExploring
import DaemonLifecycleTesting
import Synchronization
import TestSupport
import Testing

@testable import queued

/// The worker with a queue in memory, and time in the test's hand: a job's payload is how many seconds it takes.
@Suite(.timeLimit(.minutes(5))) struct WorkerTests {
  private let mock = MockLifecycleSubject()
  private let queue = FakeQueue()
  private let log = Log()
  private let folder: Folder

  init() throws {
    folder = try Folder()
    try folder.write("host=one\n", to: "database")
  }

  private func started(_ payloads: String...) async throws {
    for (index, payload) in payloads.enumerated() {
      queue.add(Job(id: "\(index + 1)", payload: payload))
    }
    let settings = Settings(file: folder.path("database")) { $0.hasPrefix("host=") }
    let worker = try Worker(settings) { [queue] in
      FakeStore(queue)
    } perform: { [mock] job in
      guard let seconds = Int(job.payload) else { throw Failure() }
      try await mock.clock.sleep(for: .seconds(seconds))
      return "done"
    } say: { [log] in
      log.add($0)
    }
    worker.work(in: mock)
    try await mock.waitUntilSettled()
  }

  private struct Failure: Error, CustomStringConvertible { let description = "no number" }

  private func pauseOrStop(_ signal: UnixSignal, after seconds: Int) async throws {
    try await mock.waitUntilSleeping()
    mock.inject(signal)
    // The job, and the limit.
    try await mock.waitUntilSleeping(2)
    await mock.advance(by: .seconds(seconds))
    let report = try await mock.waitUntilSettled()
    #expect(report.problems.isEmpty, "\(report)")
  }

  @Test(arguments: [UnixSignal.sigusr1, .sigterm])
  func theJobInHandIsFinishedAndNoOtherBegun(_ signal: UnixSignal) async throws {
    try await started("2", "1")
    try await pauseOrStop(signal, after: 2)
    #expect(queue.all.done == ["1"] && queue.all.waiting == ["2"])
    #expect(queue.all.connections == 0)
    try await mock.send(.sigterm)
  }

  @Test func aLongJobIsHandedBackAndTakenAgain() async throws {
    try await started("60")
    try await pauseOrStop(.sigusr1, after: 3)
    #expect(queue.all.waiting == ["1"] && queue.all.connections == 0)
    #expect(mock.state == .background)
    #expect(log.all.contains("Job 1 is handed back: it would have taken too long."))
    try await mock.send(.sigusr2)
    try await pauseOrStop(.sigterm, after: 3)
    #expect(queue.all.waiting == ["1"] && queue.all.connections == 0)
  }

  /// However long it is gone.
  @Test func aDatabaseThatIsGoneIsTriedAgain() async throws {
    queue.isGone = true
    try await started("1")
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(3600))
    // The note of its work says why, and is gone in time: a text of its own would stay in a pause.
    #expect(mock.statusText == nil)
    #expect(mock.state == .foreground && queue.all.connections == 0)
    queue.isGone = false
    await mock.advance(by: .seconds(10))
    #expect(queue.all.done == ["1"] && mock.statusText == "jobs done: 1")
    try await mock.send(.sigterm)
  }

  /// The job is handed back, and the stop has no problem to report.
  @Test func aConnectionThatIsLostDuringAPauseIsNoFailure() async throws {
    try await started("2")
    try await mock.waitUntilSleeping()
    mock.inject(.sigterm)
    try await mock.waitUntilSleeping(2)
    queue.isGone = true
    await mock.advance(by: .seconds(2))
    #expect(try await mock.waitUntilSettled().problems.isEmpty)
    #expect(queue.all.waiting == ["1"] && queue.all.connections == 0)
  }

  @Test func aJobThatFailsIsNoReasonToStop() async throws {
    try await started("x", "1")
    try await mock.waitUntilSleeping()
    await mock.advance(by: .seconds(1))
    #expect(log.all.contains("Job 1 failed: no number"))
    #expect(queue.all.done == ["2"] && queue.all.connections == 1)
    try await mock.send(.sigterm)
  }

  @Test func aReloadConnectsAnewAfterTheJob() async throws {
    try await started("2", "2")
    try await mock.waitUntilSleeping()
    try folder.write("host=two\n", to: "database")
    #expect(try await mock.send(.sighup).problems.isEmpty)
    await mock.advance(by: .seconds(3))
    #expect(queue.all.opened == ["host=one", "host=two"] && queue.all.done == ["1"])

    try folder.write("password=secret\n", to: "database")
    let sentence = try await mock.send(.sighup).problems.map { "\($0)" }.joined()
    #expect(sentence.contains("has no connection string") && !sentence.contains("secret"))
    await mock.advance(by: .seconds(3))
    #expect(queue.all.opened.count == 2 && queue.all.done == ["1", "2"])
    try await mock.send(.sigterm)
  }

  /// Whenever it is paused, reloaded or stopped, and whenever the server goes away: no job is lost or done twice, and no
  /// connection is left open.
  @Test func noJobIsLostInAnyRun() async throws {
    let explored = try await MockLifecycleSubject.explore(for: .seconds(2)) { run in
      let folder = try Folder()
      try folder.write("host=one\n", to: "database")
      let queue = FakeQueue { run.shouldFail("the server is gone") }
      let finished = Log()
      for job in 1...3 { queue.add(Job(id: "\(job)", payload: "\(job)")) }
      let settings = Settings(file: folder.path("database")) { $0.hasPrefix("host=") }
      let worker = try Worker(settings) {
        FakeStore(queue)
      } perform: { job in
        // The longest takes longer than a pause may.
        try await run.mock.clock.sleep(for: .seconds(4 * (Int(job.payload) ?? 0)))
        finished.add(job.id)
        return "done"
      } say: { _ in
      }
      worker.work(in: run.mock)
      return {
        withExtendedLifetime(folder) {}
        let found = queue.all
        if found.connections > 1 { throw TestFailure("\(found.connections) connections") }
        if Set(found.done).count < found.done.count { throw TestFailure("twice: \(found.done)") }
        // One that the pause has cut off is not done.
        guard Set(finished.all).isSuperset(of: found.done) else {
          throw TestFailure("not finished: \(found.done)")
        }
        guard run.mock.exitResult != nil || run.mock.state == .background else { return }
        if found.connections > 0 { throw TestFailure("a connection is left open") }
        if Set(found.done + found.waiting) != ["1", "2", "3"] {
          throw TestFailure("lost: \(found)")
        }
      }
    }
    print("queued: \(explored)")
  }

  @Test(arguments: ["", "host=a\nhost=b\n", "host=\0", String(repeating: "host=", count: 1000)])
  func whatIsNoConnectionStringIsRefused(_ text: String) throws {
    let settings = Settings(file: try folder.write(text, to: "database")) { $0.hasPrefix("host=") }
    #expect(throws: SettingsError.self) { try settings.connectionString() }
    #expect(throws: SettingsError.self) {
      try Settings(file: "/no/file", isValid: settings.isValid).connectionString()
    }
  }
}

/// The jobs, and the connections to them.
private final class FakeQueue: Sendable {
  struct State {
    var jobs: [Job] = []
    var done: [String] = []
    var opened: [String] = []
    var connections = 0
    var waiting: [String] { jobs.map(\.id) }
  }
  private let state = Mutex(State())
  private let gone = Mutex(false)
  private let fails: @Sendable () -> Bool

  init(fails: @escaping @Sendable () -> Bool = { false }) { self.fails = fails }

  var all: State { state.withLock { $0 } }
  var isGone: Bool {
    get { gone.withLock { $0 } || fails() }
    set { gone.withLock { $0 = newValue } }
  }
  func add(_ job: Job) { state.withLock { $0.jobs.append(job) } }
  func change<Result: Sendable>(_ body: (inout sending State) -> sending Result) -> Result {
    state.withLock(body)
  }
}

/// Hands back what was taken at its `close`, as a database does.
private actor FakeStore: JobStore {
  private let queue: FakeQueue
  private var isOpen = false
  private var taken: Job?

  init(_ queue: FakeQueue) { self.queue = queue }

  func open(_ connectionString: String) throws {
    if queue.isGone { throw DatabaseError(description: "the server is gone") }
    isOpen = true
    queue.change {
      $0.opened.append(connectionString)
      $0.connections += 1
    }
  }

  func withNextJob(_ work: @escaping Work) async throws -> Bool {
    guard let job = queue.change({ $0.jobs.isEmpty ? nil : $0.jobs.removeFirst() }) else {
      return false
    }
    taken = job
    do { _ = try await work(job) } catch {
      if Task.isCancelled { throw error }
      taken = nil
      throw JobFailure(job: job, error: error)
    }
    if queue.isGone { throw DatabaseError(description: "the server is gone") }
    taken = nil
    queue.change { $0.done.append(job.id) }
    return true
  }

  func close() {
    guard isOpen else { return }
    isOpen = false
    let job = taken
    queue.change {
      $0.connections -= 1
      if let job { $0.jobs.append(job) }
    }
  }
}
