// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleExploring
import DaemonLifecycleTesting
import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycleLease

private final class Writer: ForegroundObserver, BackgroundObserver, SaveObserver,
  TerminationObserver
{
  let lease: Lease
  let log = Mutex<[String]>([])
  init(_ lease: Lease) { self.lease = lease }
  func say(_ word: String) { log.withLock { $0.append("\(word) \(lease.token ?? "-")") } }
  func willEnterForeground(_: WillEnterForeground) { say("works") }
  func didEnterBackground(_: DidEnterBackground) { say("rests") }
  func shouldSaveState(_: ShouldSaveState) { say("saves") }
  func willTerminate(_: WillTerminate) { say("ends") }
  var words: [String] { log.withLock { $0 } }
}

/// A hook of the pause that ends when the test says so, and not when it is cancelled.
private final class EndlessWork {
  private let gate = AsyncStream.makeStream(of: Void.self)
  private let token: LifecycleToken

  init(in mock: MockLifecycleSubject) {
    token = mock.observe(DidEnterBackground.self) { [stream = gate.stream] _ in
      await Task { for await _ in stream {} }.value
    }
  }

  func end() { gate.continuation.finish() }
}

private actor BlockedObserver: BackgroundObserver {
  nonisolated let isAtWork = Atomic<Bool>(false)
  nonisolated let goesOn = DispatchSemaphore(value: 0)
  /// Not on Swift's pool, which may have two threads for all tests.
  private let executor: LifecycleSerialExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(_ lifecycle: any LifecycleObservable) { executor = lifecycle.makeSerialExecutor() }

  func work() {
    isAtWork.store(true, ordering: .relaxed)
    wait()
  }
  private nonisolated func wait() { goesOn.wait() }
  func didEnterBackground(_: DidEnterBackground) {}
}

@Suite(.timeLimit(.minutes(5))) struct LeaseTests {
  private let lease = Lease("ledger", command: ["/no/such/elector"])
  private var configuration: LifecycleConfiguration {
    var configuration = LifecycleConfiguration(logging: .off)
    configuration.interfaces.append(.pausing(without: lease))
    return configuration
  }

  @Test func worksWhileTheLeaseIsHeld() async throws {
    let mock = MockLifecycleSubject(configuration: configuration)
    let writer = Writer(lease)
    mock.addObserver(writer)
    try await mock.waitUntilSettled()
    lease.grant(token: "7")
    try await mock.waitUntilInForeground()
    #expect(lease.token == "7")
    lease.revoke()
    try await mock.waitUntilSettled()
    #expect(mock.state == .background)
    #expect(lease.token == nil)
    lease.grant(token: "9")
    try await mock.waitUntilInForeground()
    try await mock.send(.sigterm)
    #expect(
      writer.words == [
        "works 7", "rests -", "saves -", "works 9", "rests 9", "saves 9", "ends 9",
      ])
    #expect(lease.token == nil)
    try mock.checkNothingPending()
  }

  @Test func isGivenUpInAPauseAndTakenAgainAfterIt() async throws {
    let mock = MockLifecycleSubject(configuration: configuration)
    let writer = Writer(lease)
    mock.addObserver(writer)
    lease.grant(token: "7")
    try await mock.waitUntilInForeground()
    try await mock.send(.sigusr1)
    try await mock.waitUntilSettled()
    #expect(lease.token == nil)
    // Granted while the operator's pause lasts: it waits.
    lease.grant(token: "8")
    try await mock.waitUntilSettled()
    #expect(lease.token == nil)
    #expect(mock.state == .background)
    try await mock.send(.sigusr2)
    try await mock.waitUntilInForeground()
    #expect(writer.words == ["works 7", "rests 7", "saves 7", "works 8"])
  }

  @Test func isGivenUpBeforeASleep() async throws {
    let mock = MockLifecycleSubject(configuration: configuration)
    lease.grant(token: "7")
    try await mock.waitUntilInForeground()
    try await mock.send(.sleep)
    #expect(lease.token == nil)
    try await mock.send(.wakeUp)
    try await mock.waitUntilSettled()
    #expect(mock.state == .background)
    lease.grant(token: "8")
    try await mock.waitUntilInForeground()
  }

  /// Another may have worked meanwhile, so the work has to begin anew.
  @Test func isNotTakenBackBeforeTheWorkHasEnded() async throws {
    let mock = MockLifecycleSubject(configuration: configuration)
    let writer = Writer(lease)
    mock.addObserver(writer)
    let gate = AsyncStream.makeStream(of: Void.self)
    let token = mock.observe(DidEnterBackground.self) { _ in for await _ in gate.stream { break } }
    lease.grant(token: "7")
    try await mock.waitUntilInForeground()
    lease.revoke()
    // The reasons change while the work ends.
    mock.inject(.sigusr1)
    mock.inject(.sigusr2)
    lease.grant(token: "9")
    for _ in 0..<20 { await Task.yield() }
    #expect(lease.token == nil)
    gate.continuation.yield()
    try await mock.waitUntilInForeground()
    #expect(lease.token == "9")
    #expect(writer.words == ["works 7", "rests -", "saves -", "works 9"])
    _ = token
  }

  @Test func isNotTakenBackBeforeThePauseHasBegun() async throws {
    let mock = MockLifecycleSubject(configuration: configuration)
    let writer = Writer(lease)
    mock.addObserver(writer)
    let gate = AsyncStream.makeStream(of: Void.self)
    lease.grant(token: "7")
    try await mock.waitUntilInForeground()
    let token = mock.observe(ShouldReload.self) { _ in for await _ in gate.stream { break } }
    mock.inject(.reload)
    lease.revoke()
    lease.grant(token: "9")
    #expect(lease.token == nil)
    gate.continuation.yield()
    try await mock.waitUntilInForeground()
    // The reload's save may have been before the loss.
    #expect(writer.words.filter { !$0.hasPrefix("saves") } == ["works 7", "rests -", "works 9"])
    _ = token
  }

  @Test func endsWhereWorkDoesNot() async throws {
    let mock = MockLifecycleSubject(configuration: configuration)
    let work = EndlessWork(in: mock)
    lease.grant(token: "7")
    try await mock.waitUntilInForeground()
    lease.revoke()
    await mock.advance(by: .seconds(60))
    #expect(mock.immediateExitStatus == 70)
    work.end()
  }

  /// Work that has the lease, and whose pause was abandoned.
  private func abandonedPause(of mock: MockLifecycleSubject) async throws -> EndlessWork {
    let work = EndlessWork(in: mock)
    lease.grant(token: "7")
    try await mock.waitUntilInForeground()
    mock.inject(.sigusr1)
    await mock.advance(by: .seconds(60))
    return work
  }

  /// What an abandoned hook does is still the active one's.
  @Test func isKeptWhileAnAbandonedHookRuns() async throws {
    let mock = MockLifecycleSubject(configuration: configuration)
    let work = try await abandonedPause(of: mock)
    #expect(mock.state == .background)
    #expect(lease.token == "7")
    work.end()
    // It looks each second, and the hook ends as soon as its thread has time.
    while lease.token != nil { await mock.advance(by: .seconds(1)) }
  }

  /// Lost then, it is over when the hook is, or the time for a handover.
  @Test(arguments: [true, false]) func aLossLeavesAnAbandonedHookItsTime(ends: Bool) async throws {
    let log = Log()
    var configuration = configuration
    configuration.interfaces.append(.log { log.add($0.message) })
    let mock = MockLifecycleSubject(configuration: configuration)
    let work = try await abandonedPause(of: mock)
    lease.revoke()
    await mock.advance(by: .seconds(2))
    #expect(mock.immediateExitStatus == nil)
    if ends {
      work.end()
      // Its thread has to have time before the clock moves on.
      try await eventually { log.all.contains { $0.contains("it had been abandoned") } }
    }
    await mock.advance(by: .seconds(60))
    #expect(mock.immediateExitStatus == (ends ? nil : 70))
    work.end()
  }

  /// The stop waits for what was left behind, and then has the others save.
  @Test func aLossInAStopCostsNoSave() async throws {
    var configuration = configuration
    configuration.hookTimeout = .seconds(10)
    let mock = MockLifecycleSubject(configuration: configuration)
    let writer = Writer(lease)
    mock.addObserver(writer)
    let work = try await abandonedPause(of: mock)
    let saves = writer.words.count { $0.hasPrefix("saves") }
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(1))
    lease.revoke()
    await mock.advance(by: .seconds(60))
    try await mock.waitUntilSettled()
    #expect(writer.words.count { $0.hasPrefix("saves") } == saves + 1)
    #expect(mock.exitResult?.exitStatus == 124)
    work.end()
  }

  /// Nobody else can have it meanwhile.
  @Test func goesOnWithALeaseThatIsKept() async throws {
    let mock = MockLifecycleSubject(configuration: configuration)
    let work = try await abandonedPause(of: mock)
    mock.inject(.sigusr2)
    try await eventually { mock.state == .foreground }
    #expect(lease.token == "7")
    work.end()
  }

  /// Its reason is public, and nobody else's to remove.
  @Test func isNeededWhoeverSaysOtherwise() async throws {
    let mock = MockLifecycleSubject(configuration: configuration)
    try await mock.waitUntilSettled()
    mock.resume(for: lease.reason)
    try await eventually { mock.state == .background }
    try await mock.waitUntilSettled()
    #expect(mock.state == .background)
    lease.grant(token: "7")
    try await mock.waitUntilInForeground()
  }

  @Test func aStopThatAbandonsWorkKeepsIt() async throws {
    let mock = MockLifecycleSubject(configuration: configuration)
    let work = EndlessWork(in: mock)
    lease.grant(token: "7")
    try await mock.waitUntilInForeground()
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(120))
    try await mock.waitUntilSettled()
    #expect(mock.exitResult != nil)
    #expect(lease.token == "7")
    work.end()
  }

  /// It is about to enter the foreground.
  @Test func isNotGivenUpBehindAHold() async throws {
    let mock = MockLifecycleSubject(configuration: configuration)
    try await mock.waitUntilSettled()
    do {
      let hold = mock.holdDeliveries()
      lease.grant(token: "7")
      try await mock.waitUntilSettled()
      #expect(mock.state == .background)
      #expect(lease.token == "7")
      hold.cancel()
    }
    try await mock.waitUntilInForeground()
    #expect(lease.token == "7")
  }

  @Test func isForOneSubject() async throws {
    let lease = Lease("ledger", command: ["sh", "-c", "echo 7; exec cat"])
    var configuration = LifecycleConfiguration(logging: .off, interfaces: [])
    configuration.interfaces.append(.pausing(without: lease))
    let (first, second) = (
      LifecycleSubject(configuration: configuration), LifecycleSubject(configuration: configuration)
    )
    async let exit = first.run()
    try await eventually { first.state == .foreground }
    async let other = second.run()
    try await eventually { second.state == .background }
    second.pause(for: .operator)
    second.resume(for: .operator)
    second.terminate()
    #expect(try await other.exitStatus == 0)
    #expect(lease.token == "7")
    first.terminate()
    #expect(try await exit.exitStatus == 0)
    #expect(lease.token == nil)
    let third = LifecycleSubject(configuration: configuration)
    async let last = third.run()
    try await eventually { third.state == .foreground }
    third.terminate()
    #expect(try await last.exitStatus == 0)
  }

  /// One that has ended and is released later takes nothing from the one that has the lease now.
  @Test func isNotTakenByWhatIsLeftOfAnother() async throws {
    var old: MockLifecycleSubject? = MockLifecycleSubject(configuration: configuration)
    lease.grant(token: "7")
    try await old?.waitUntilInForeground()
    let new = MockLifecycleSubject(configuration: configuration)
    lease.grant(token: "8")
    try await new.waitUntilInForeground()
    try await old?.send(.sigterm)
    #expect(lease.token == "8")
    old = nil
    #expect(lease.token == "8" && new.state == .foreground)
  }

  /// An actor that was never told of the pause may work on.
  @Test(.serialized, arguments: [false, true]) func isKeptWhileAnActorIsBlocked(isLost: Bool)
    async throws
  {
    let mock = MockLifecycleSubject(configuration: configuration)
    let observer = BlockedObserver(mock)
    mock.addObserver(observer)
    lease.grant(token: "7")
    try await mock.waitUntilInForeground()
    let work = Task { await observer.work() }
    try await eventually { observer.isAtWork.load(ordering: .relaxed) }
    if isLost { lease.revoke() } else { mock.inject(.sigusr1) }
    await mock.advance(by: .seconds(60))
    try await eventually { mock.state == .background }
    if isLost {
      #expect(mock.immediateExitStatus == 70)
    } else {
      #expect(lease.token == "7")
    }
    observer.goesOn.signal()
    await work.value
  }

  @Test(arguments: [
    (#"{"header":{"revision":9},"create_revision":8,"lease":1}"#, "8"),
    (#"{"create_revision": "12"}"#, "12"), (#"{"create_revision":}"#, nil), ("8", nil),
  ]) func aTokenIsFoundByItsKey(_ line: String, _ token: String?) {
    let lease = Lease("ledger", command: ["etcdctl"], tokenKey: "create_revision")
    #expect(lease.token(in: line) == token)
    #expect(Lease("ledger", command: []).token(in: line) == line)
  }

  /// Two would wait for each other.
  @Test func aDaemonHasOne() async throws {
    var configuration = configuration
    configuration.interfaces.append(.pausing(without: Lease("other", command: [])))
    let mock = MockLifecycleSubject(configuration: configuration)
    lease.grant(token: "7")
    try await mock.waitUntilSettled()
    #expect(mock.state == .background)
    #expect(lease.token == nil)
  }

  /// Whatever comes when: each round of work has a token that no other had, and has ended before the next begins.
  @Test func eachRoundHasATokenOfItsOwnInAnyRun() async throws {
    struct Wrong: Error { let words: [String] }
    let count = Mutex(0)
    let explored = try await MockLifecycleSubject.explore(
      for: .seconds(2), configuration: configuration
    ) { [lease] run in
      let writer = Writer(lease)
      run.mock.addObserver(writer)
      run.mock.addTask(mayReturn: true) {
        for token in 1...3 {
          lease.grant(token: "\(token)")
          try await run.mock.clock.sleep(for: .seconds(1))
          if token < 3 { lease.revoke() }
        }
      }
      return {
        // One that was granted and lost before the daemon came to it has none; its pause is on its way.
        let rounds = writer.words.filter { $0.hasPrefix("works") || $0.hasPrefix("rests") }
        let tokens = rounds.filter { $0.hasPrefix("works") && $0 != "works -" }
        count.withLock { $0 += tokens.count }
        let isInTurn = zip(rounds, rounds.dropFirst()).allSatisfy { $0.prefix(1) != $1.prefix(1) }
        if !isInTurn || Set(tokens).count != tokens.count { throw Wrong(words: writer.words) }
      }
    }
    #expect(count.withLock { $0 } > explored.runs)
    print("lease: \(count.withLock { $0 }) rounds; \(explored)")
  }
}

/// What is asked for in any order comes to the same: work is done exactly with a lease and without another reason.
@Suite(.timeLimit(.minutes(5))) struct RandomLeaseTests {
  private struct Random: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state ^ (state >> 31)
    }
  }

  @Test(arguments: 1...200) func anyOrder(_ seed: Int) async throws {
    var random = Random(state: UInt64(seed) &* 0x9e37_79b9_7f4a_7c15)
    let lease = Lease("ledger", command: [])
    var configuration = LifecycleConfiguration(logging: .off)
    configuration.interfaces.append(.pausing(without: lease))
    let mock = MockLifecycleSubject(configuration: configuration)
    let writer = Writer(lease)
    mock.addObserver(writer)
    var (isPaused, isAsleep, done) = (false, false, [String]())
    for _ in 0..<40 {
      switch Int.random(in: 0..<8, using: &random) {
      case 0, 1:
        lease.grant(token: "\(done.count)")
        done.append("grant")
      case 2:
        lease.revoke()
        done.append("revoke")
      case 3:
        mock.inject(.sigusr1)
        isPaused = true
        done.append("pause")
      case 4:
        mock.inject(.sigusr2)
        isPaused = false
        done.append("resume")
      case 5:
        mock.inject(.sleep)
        isAsleep = true
        done.append("suspend")
      case 6:
        mock.inject(.wakeUp)
        isAsleep = false
        done.append("wake")
      default:
        mock.inject(.saveState)
        done.append("save")
      }
      if Int.random(in: 0..<3, using: &random) == 0 {
        try await mock.waitUntilSettled()
        // What the last fact has caused.
        for _ in 0..<3 {
          await Task.yield()
          try await mock.waitUntilSettled()
        }
        let works = mock.state == .foreground
        #expect(
          works == (lease.token != nil),
          "\(seed): \(mock.state), \(lease.token ?? "-") after \(done)")
        if isPaused || isAsleep { #expect(!works, "\(seed): works after \(done)") }
        done.append("|")
      }
    }
    try await mock.send(.sigterm)
    #expect(lease.token == nil)
    try mock.checkNothingPending()
  }
}
