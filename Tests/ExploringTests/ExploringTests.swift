// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Dispatch
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycleExploring
@testable import DaemonLifecycleTesting

@Suite struct ExploringTests {
  /// The error of an exploration, in words; `nil` if it has found nothing.
  private func finding(
    in daemon: @escaping ExploredDaemon, for duration: Duration = .seconds(600),
    replaying text: String? = nil
  ) async -> String? {
    do {
      try await MockLifecycleSubject.explore(for: duration, replaying: text, daemon)
      return nil
    } catch { return "\(error)" }
  }

  /// The text to replay in an error.
  private func choices(in finding: String) -> String? {
    finding.split(separator: "replaying: \"", omittingEmptySubsequences: false).last
      .map { String($0.dropLast()) }
  }

  /// Two signals of the map post notifications of one type, as `sending:` may.
  @Test func eachPostIsAnEvent() {
    struct Change: CustomNotification { let isHigh: Bool }
    var configuration = LifecycleConfiguration()
    configuration.signals[.realTime(0)!] = .post(Change(isHigh: true))
    configuration.signals[.realTime(1)!] = .post(Change(isHigh: false))
    let explorer = Explorer(configuration, sending: [.post(Change(isHigh: true))]) { _ in {} }
    let changes = explorer.words.filter { $0.hasPrefix("Change") }
    #expect(changes.count == 3)
  }

  private actor Noise {
    func make() async { await Task.yield() }
  }

  /// Beside other work on Swift's pool, on the main actor and on mocks.
  private func besideNoise<T: Sendable>(_ body: @Sendable () async throws -> T) async throws -> T {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<2 {
        group.addTask {
          let noise = Noise()
          while !Task.isCancelled {
            await noise.make()
            await MainActor.run {}
            try await MockLifecycleSubject().send(.sigusr1)
          }
        }
      }
      defer { group.cancelAll() }
      return try await body()
    }
  }

  @Test(arguments: SampleDaemon.all) func itIsDecided(_ sample: SampleDaemon) async throws {
    let found = await finding(in: sample.daemon, for: .seconds(sample.finding == nil ? 1 : 600))
    print("\(sample): \(found ?? "nothing found")")
    #expect(sample.finding == nil ? found == nil : found?.hasPrefix(sample.finding!) == true)
  }

  @Test(arguments: SampleDaemon.all.filter { $0.finding != nil })
  func itIsReplayedExactly(_ sample: SampleDaemon) async throws {
    let found = try #require(await finding(in: sample.daemon))
    let text = try #require(choices(in: found))
    try await besideNoise {
      var findings: Set<String> = []
      for _ in 0..<LongTests.count(10, long: 100) {
        findings.insert(await finding(in: sample.daemon, replaying: text) ?? "nothing")
      }
      #expect(findings.count == 1)
      #expect(findings.first?.hasPrefix(sample.finding!) == true, "\(found)\n\(findings)")
    }
  }

  @Test func theSameSeedMakesTheSameChoices() async throws {
    let sample = SampleDaemon.lostIncrement
    func shortest() async throws -> String? {
      try #require(await finding(in: sample.daemon)).split(separator: "Again").last.map(String.init)
    }
    #expect(try await shortest() == shortest())
  }

  // MARK: What can't be explored

  @Test(arguments: Escape.allCases) func anEscapeIsNamed(_ escape: Escape) async throws {
    let found = await finding(
      in: { run in
        run.mock.addForeground { try await escape.wait() }
        return {}
      })
    #expect(found?.contains("The run can't be replayed: ") == true, "\(found ?? "nothing")")
  }

  enum Escape: CaseIterable {
    case sleep, dispatch, thread, executor

    func wait() async throws {
      switch self {
      case .sleep: try await Task.sleep(for: .milliseconds(20))
      case .dispatch:
        await withCheckedContinuation { continuation in
          // A queue of its own has a thread although all of the pool's are busy.
          DispatchQueue(label: "escape").async { continuation.resume() }
        }
      case .thread:
        await withCheckedContinuation { continuation in
          Thread { continuation.resume() }.start()
        }
      case .executor: await Elsewhere().visit()
      }
    }

    /// An actor on a queue of its own.
    actor Elsewhere {
      private let executor = Queue()
      nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
      func visit() {}

      final class Queue: SerialExecutor {
        private let queue = DispatchQueue(label: "elsewhere")
        func enqueue(_ job: consuming ExecutorJob) {
          let job = UnownedJob(job)
          queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
        }
      }
    }
  }

  @Test func aJobWithoutEndIsNamed() async throws {
    let found = await finding(in: { run in
      run.mock.addForeground(name: "spinner") { while true { await Task.yield() } }
      return {}
    })
    #expect(found?.hasPrefix("After 20000 steps there is still a job to run") == true)
  }

  /// It is ended by the terminating event, although it never rests before.
  @Test func aDaemonThatNeverRestsIsEnded() async throws {
    let found = await finding(
      in: { run in
        run.mock.addForeground { while !Task.isCancelled { await Task.yield() } }
        return {}
      }, for: .milliseconds(300))
    #expect(found == nil)
  }

  /// A run that has more steps than that counts as one without end, and one without rest is ended after its last event.
  @Test func theLastEventComesInTime() {
    for seed in 0..<200 as Range<UInt64> {
      let choices = Choices(seed: seed, events: ["pause", "terminate"], upTo: 3, length: 5100)
      #expect(choices.events.last?.step ?? 0 <= ExploredRun.mostSteps / 2)
    }
  }

  /// Of what a pause has cancelled an error of its own is no failure.
  @Test func aCancelledBodyMayThrow() async throws {
    let found = await finding(
      in: { run in
        run.mock.addForeground {
          do { try await run.mock.clock.sleep(for: .seconds(1000)) } catch { throw DiskFull() }
        }
        return {}
      }, for: .milliseconds(300))
    #expect(found == nil)
  }

  @Test(.long) func aJobThatBlocksIsNamed() async throws {
    let found = await finding(in: { run in
      run.mock.addObserver(Blocked())
      return {}
    })
    #expect(found?.hasPrefix("A job has run for 10 s: ") == true)
    #expect(found?.contains("Blocked is still in its hook for DidEnterBackground") == true)
  }

  @Test(.long) func workThatBlocksIsNamed() async throws {
    let found = await finding(in: { run in
      run.mock.addForeground(name: "blocker") { Self.block() }
      return {}
    })
    #expect(found?.contains("Pending: a run of blocker.") == true)
  }

  private static func block() { DispatchSemaphore(value: 0).wait() }

  private final class Blocked: BackgroundObserver {
    func didEnterBackground(_ notification: DidEnterBackground) {
      DispatchSemaphore(value: 0).wait()
    }
  }

  // MARK: Set-ups, checks and texts

  @Test func whatTheSetUpThrowsIsThrown() async throws {
    await #expect(throws: DiskFull.self) {
      try await MockLifecycleSubject.explore { _ in throw DiskFull() }
    }
  }

  @Test func aCheckThatWaitsIsNoEndlessTest() async throws {
    let found = await finding(in: { run in
      {
        for await _ in AsyncStream<Void>(unfolding: {
          try? await run.mock.clock.sleep(for: .seconds(1))
        }) {}
      }
    })
    #expect(found?.hasPrefix("The check waits for something") == true)
  }

  @Test func aHookThatThrowsIsFoundUnlessAFakeFailed() async throws {
    final class Saver: SaveObserver, Sendable {
      let fails: @Sendable () -> Bool
      init(fails: @escaping @Sendable () -> Bool) { self.fails = fails }
      func shouldSaveState(_ notification: ShouldSaveState) throws {
        if fails() { throw DiskFull() }
      }
    }
    let found = await finding(in: { run in
      run.mock.addObserver(Saver { true })
      return {}
    })
    #expect(found?.hasPrefix("Saver, ShouldSaveState: failed after 0 ms: DiskFull()") == true)
    let expected = await finding(
      in: { run in
        run.mock.addObserver(Saver { run.shouldFail("disk full") })
        return {}
      }, for: .milliseconds(300))
    #expect(expected == nil)
  }

  @Test func customEventsArrive() async throws {
    struct Rotated: CustomNotification { let number: Int }
    let arrived = Mutex<[Int]>([])
    let explored = try await MockLifecycleSubject.explore(
      sending: [
        .post(Rotated(number: 1)), .post(Rotated(number: 2)),
        .pause(for: BackgroundReason("no network")),
      ], replaying: "20:pause(no_network) 30:Rotated_2 40:Rotated"
    ) { run in
      run.mock.addObserver(Sink())
      let token = run.mock.observe(Rotated.self) { rotated in
        arrived.withLock { $0.append(rotated.number) }
      }
      return { withExtendedLifetime(token) {} }
    }
    #expect(arrived.withLock { $0 } == [2, 1])
    #expect(explored.description.contains("pause(no_network) 1"))
    #expect(explored.description.hasSuffix("; 1 run ended before any time had passed"))
  }

  /// A defect that one order of three events shows may be missed by chance, but not by the orders.
  @Test func everyOrderOfThreeEventsIsTriedAtRest() async throws {
    let explorer = Explorer(LifecycleConfiguration(), sending: []) { _ in {} }
    let kinds = explorer.words.count - 1
    let all = kinds + kinds * kinds + kinds * kinds * kinds
    let orders = (1...all).compactMap { explorer.order($0, upTo: 3) }
    #expect(Set(orders).count == all && explorer.order(all + 1, upTo: 3) == nil)
    #expect(orders.contains("rest:sleep rest:pause rest:resume"))
    let states = Mutex<[String]>([])
    try await MockLifecycleSubject.explore(replaying: "rest:pause rest:reload rest:resume") { run in
      run.mock.addForeground {
        for try await _ in run.mock.ticks(every: .seconds(1)) {}
      }
      return { states.withLock { $0.append("\(run.mock.state)") } }
    }
    let expected = ["foreground", "background", "background", "foreground", "terminated"]
    #expect(states.withLock { $0 } == expected)
  }

  /// For a test that does the same on every machine.
  @Test func aLimitOfRunsIsKept() async throws {
    let explored = try await MockLifecycleSubject.explore(for: .seconds(600), runs: 20) { run in
      run.mock.addObserver(Sink())
      return {}
    }
    #expect(explored.runs == 20 && explored.choices > 0)
  }

  private final class Sink: BackgroundObserver {
    func didEnterBackground(_ notification: DidEnterBackground) {}
  }

  @Test(arguments: ["1:nothing", "reload", "0x1:reload", "1:+0", "1:fails 2", "seed:1", "rest:+1"])
  func textsThatCannotBeReplayedAreRefused(_ text: String) async throws {
    let found = await finding(in: { _ in {} }, replaying: text)
    #expect(
      found?.contains(
        "can't be replayed: it is no step with one of the words pause, pressure, reload, ") == true)
  }

  @Test func aCrashLeavesWhatToReplay() async throws {
    let seen = Mutex<String?>(nil)
    let sample = SampleDaemon.forgottenFailure
    let folder = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
    let prefix = "explored-\(getpid())-"
    _ = await finding(in: { run in
      for file in try FileManager.default.contentsOfDirectory(atPath: folder)
      where file.hasPrefix(prefix) {
        // Others of this process are explored at the same time.
        if let text = try? String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8) {
          seen.withLock { $0 = text }
        }
      }
      return try await sample.daemon(run)
    })
    let text = try #require(seen.withLock { $0 }).trimmingCharacters(in: .newlines)
    // It can be replayed, whatever it has found.
    let replayed = await finding(in: sample.daemon, replaying: text)
    #expect(replayed?.contains("can't be replayed") != true)
  }

  @Test func itEndsWithItsTask() async throws {
    let task = Task {
      try await MockLifecycleSubject.explore(for: .seconds(1000), SampleDaemon.jobs.daemon)
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }
}
