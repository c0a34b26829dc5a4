// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import DaemonSystemd
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// The threads: they grow by the hooks that block, shrink again, and are not needed for a delivery to end.
@Suite struct HookExecutorTests {
  /// Nothing is late, however busy the machine is, but what `makeLate` makes late.
  private let configuration = LifecycleConfiguration(
    signals: [:], hookTimeout: .seconds(250), exitGrace: nil, logging: .off)

  /// One whose clock the test moves.
  private func core(_ executor: HookExecutor = HookExecutor()) -> LifecycleCore {
    LifecycleCore(configuration: configuration, virtualTime: VirtualTime(), executor: executor)
  }

  /// Launches the core; the reports that follow.
  private func launch(_ core: LifecycleCore) async -> AsyncStream<LifecycleReport>.Iterator {
    try? core.executor.listen()
    var reports = core.stream(of: LifecycleReport.self, bufferingNewest: 64)
      .makeAsyncIterator()
    core.launch { true }
    _ = await reports.next()
    return reports
  }

  /// An executor that gets so many threads and no more, until it is allowed more.
  private func executor(_ allowed: Allowance) -> HookExecutor {
    HookExecutor { name, body in
      guard allowed.threads.subtract(1, ordering: .relaxed).oldValue > 0 else { return false }
      return Thread.spawn(named: name, body)
    }
  }

  private final class Allowance: Sendable {
    let threads: Atomic<Int>
    init(_ threads: Int) { self.threads = Atomic(threads) }
  }

  /// The thread that listens and another are enough for hooks that end.
  @Test(.timeLimit(.minutes(5))) func hooksRunWithNoThreadToBeHad() async throws {
    let allowed = Allowance(2)
    let core = LifecycleCore(configuration: configuration, executor: executor(allowed))
    let log = Log()
    core.add(Listener("a", log))
    try core.executor.listen()
    var reports = await launch(core)
    #expect(log.all == ["a launch", "a foreground"])
    // Long enough idle for every thread that may end, were there one.
    try await Task.sleep(for: .seconds(HookExecutor.idleSeconds * 2))
    core.receive(LifecycleEvent(.terminate))
    while let report = await reports.next() { #expect(report.problems.isEmpty) }
    #expect(log.all.contains("a save"))
    #expect(core.executor.threadCount == 2)
    core.close()
    try await eventually { core.executor.threadCount == 0 }
  }

  /// One of the two is in a hook that does not end, so the other listens, and runs none.
  @Test(.timeLimit(.minutes(5))) func aDeliveryEndsWithoutAThreadForItsHooks() async throws {
    let allowed = Allowance(2)
    let core = core(executor(allowed))
    let log = Log()
    let (begun, release) = (Gate(), Semaphore())
    core.add(Listener("a", log))
    core.add(
      Scripted(background: { _ in
        begun.open()
        release.wait()
      }))
    try core.executor.listen()
    var reports = await launch(core)
    log.clear()
    core.receive(LifecycleEvent(.pause(for: .operator)))
    await begun.wait()
    // Until the report is there, since one after another is late.
    let clock = Task {
      try await eventually {
        core.makeLate()
        return Task.isCancelled
      }
    }
    let report = try #require(await reports.next())
    clock.cancel()
    _ = await clock.result
    #expect(core.lifecycleState == .background)
    #expect(log.all.isEmpty)
    #expect(
      report.problems.map(\.description).contains(
        "Listener, DidEnterBackground: skipped: no thread in time"))

    // With threads to be had again, so are the hooks: it has missed the pause, and is told of it now.
    allowed.threads.store(1000, ordering: .relaxed)
    try await eventually { log.all == ["a background"] }
    // A stop waits for it.
    release.signal()
    core.receive(LifecycleEvent(.terminate))
    var entries: [String] = []
    while let report = await reports.next() { entries += report.entries.map(\.description) }
    #expect(log.all.contains("a terminate"), "\(entries)")
    core.close()
  }

  private final class Blocking: BackgroundObserver {
    let release: Semaphore
    init(_ release: Semaphore) { self.release = release }
    func didEnterBackground(_ notification: DidEnterBackground) { release.wait() }
  }

  /// One thread is kept for it from the start.
  @Test(.timeLimit(.minutes(5))) func aSaveIsCalledWithNoThreadToBeHad() async throws {
    let core = LifecycleCore(configuration: configuration, executor: executor(Allowance(3)))
    let saved = Atomic(false)
    let release = Semaphore()
    _ = core.add(
      closures: [
        .closure(for: ShouldSaveState.self) { _ in saved.store(true, ordering: .relaxed) }
      ], owner: nil, .init(), name: .given("state"))
    core.add(Blocking(release), .init(timeout: .milliseconds(50)))
    try core.executor.listen()
    _ = await launch(core)
    core.receive(LifecycleEvent(.terminate))
    let end = await core.untilTerminated()
    #expect(end.exitStatus == 124 && saved.load(ordering: .relaxed), "\(end)")
    release.signal()
    core.close()
  }

  @Test(.timeLimit(.minutes(5))) func aClosedExecutorWaitsForAThread() async throws {
    let allowed = Allowance(0)
    let executor = executor(allowed)
    executor.close()
    let ran = Gate()
    #expect(Thread.spawn(named: "enqueue") { executor.enqueue(.work { ran.open() }) })
    try await eventually { allowed.threads.load(ordering: .relaxed) < 0 }
    allowed.threads.store(1, ordering: .relaxed)
    await ran.wait()
  }

  private final class Warnings: LifecyclePart {
    let all = Log()
    var isServiceManager: Bool { false }
    func receive(_ fact: LifecycleFact) -> MonotonicTime? {
      if case .warning(let text) = fact { all.add(text) }
      return nil
    }
  }

  /// A thousand hooks that block until the limit is reached: a bounded number at once, and all of them in the end.
  @Test(.timeLimit(.minutes(5))) func hooksThatBlockTakeABoundedNumberOfThreads() async throws {
    let warnings = Warnings()
    let core = LifecycleCore(configuration: configuration, parts: [warnings])
    let most = Atomic<Int>(0)
    let observers = (0..<1000).map { _ in
      Scripted(background: { _ in
        most.max(core.executor.threadCount, ordering: .relaxed)
        // On a busy machine the first would otherwise end before the last begin.
        while !core.executor.state.withLock({ $0.hasReachedLimit }) { usleep(1000) }
      })
    }
    for observer in observers {
      core.add(observer, .init(phase: LifecyclePhase(order: 0, isConcurrent: true)))
    }
    var reports = await launch(core)
    core.receive(LifecycleEvent(.pause(for: .operator)))
    let report = try #require(await reports.next())
    #expect(report.problems.isEmpty && report.entries.count == 2000)
    #expect(most.load(ordering: .relaxed) <= HookExecutor.extraThreads + 2)
    try await eventually { !warnings.all.all.isEmpty }
    #expect(
      warnings.all.all.count == 1
        && warnings.all.all[0].hasSuffix(
          " threads are blocked in hooks and their child tasks; others must wait.")
    )
    core.close()
  }

  /// A daemon that could not even listen and run a hook does not start.
  @Test func aStartWithoutASecondThreadFails() {
    let executor = executor(Allowance(1))
    #expect(throws: LifecycleError.self) { try executor.listen() }
    executor.close()
  }

  @Test(.timeLimit(.minutes(5))) func threadsGrowByTheBlockedHooksAndShrinkAgain() async throws {
    let core = core()
    let begun = Atomic<Int>(0)
    let release = Semaphore()
    let count = 6
    let blocking = (0..<count).map { _ in
      Scripted(background: { _ in
        begun.add(1, ordering: .relaxed)
        release.wait()
      })
    }
    let healthy = Listener("healthy", Log())
    core.add(healthy)
    for observer in blocking { core.add(observer) }
    var reports = await launch(core)
    core.receive(LifecycleEvent(.pause(for: .operator)))
    for number in 1...count {
      try await eventually { begun.load(ordering: .relaxed) == number }
      core.makeLate()
    }
    let report = try #require(await reports.next())
    #expect(report.problems.count == count)
    #expect(healthy.log.all.suffix(2) == ["healthy background", "healthy save"])
    // Each of them holds one; beside the one that listens one or two stay. What a busy machine brings beside, where a hook
    // waits for a processor, ends when it is idle.
    try await eventually { (count + 2...count + 3).contains(core.executor.threadCount) }
    for _ in 0..<count { release.signal() }
    try await eventually { core.executor.threadCount == 3 }
    core.close()
    try await eventually { core.executor.threadCount == 0 }
  }

  /// Serial executors that are never idle, and a hook that has suspended: it goes on beside them, and they beside it.
  @Test func itemsThatAreNotUrgentHaveEachFourthTurn() {
    let executor = HookExecutor()
    var queue = HookQueue()
    let work: HookExecutor.WorkItem = .work {}
    let other = HookExecutor.WorkItem.job(
      unsafeBitCast(0, to: UnownedJob.self), on: executor, of: HookQueue.Source())
    for _ in 0..<2 { queue.append(other) }
    var turns = ""
    for _ in 0..<10 {
      queue.append(work)
      turns += queue.popInTurn()?.source == nil ? "u" : "o"
    }
    #expect(turns == "uuuouuuouu")
    // Without others there is no turn to be lost, and what was left is not lost either.
    #expect((0..<3).map { _ in queue.popInTurn().map { $0.source == nil } } == [true, true, nil])
  }

  /// What goes on after a suspension is not urgent, and may not be crowded out by hooks that begin.
  @Test(.timeLimit(.minutes(5))) func aHookGoesOnBesideAHundredThatBlock() async throws {
    let core = LifecycleCore(configuration: configuration, initialState: .foreground)
    try core.executor.listen()
    let (gate, wentOn) = (Gate(), Gate())
    let blocked = Atomic<Int>(0)
    let release = Semaphore()
    let together = LifecyclePhase(order: 0, isConcurrent: true)
    let suspended = Scripted(background: { _ in
      await gate.wait()
      wentOn.open()
    })
    let blocking = (0..<100).map { _ in
      Scripted(background: { _ in
        blocked.add(1, ordering: .relaxed)
        release.wait()
      })
    }
    for observer in [suspended] + blocking { core.add(observer, .init(phase: together)) }
    core.receive(LifecycleEvent(.pause(for: .operator)))
    try await eventually { blocked.load(ordering: .relaxed) == 100 }
    gate.open()
    await wentOn.wait()
    for _ in blocking { release.signal() }
    core.close()
  }

  private actor Saver: SaveObserver {
    private var isSaved = false
    func shouldSaveState(_ notification: ShouldSaveState) { isSaved = true }
  }

  /// A pause that closes many connections, each in a child task that blocks, or several such: others suspend, wait for an actor,
  /// and have child tasks all the same.
  @Test(.timeLimit(.minutes(5)), arguments: [65, 300], [1, 4])
  func childTasksThatBlockCostNoOtherItsSave(children: Int, hooks: Int) async throws {
    let core = LifecycleCore(configuration: configuration)
    let release = Semaphore()
    for _ in 0..<hooks {
      let closing = Scripted(background: { _ in
        await withTaskGroup { group in
          for _ in 0..<children { group.addTask { release.wait() } }
        }
      })
      core.add(closing, .init(timeout: .milliseconds(200)))
    }
    core.add(Saver())
    core.add(Scripted(save: { _ in await Task.yield() }))
    core.add(
      Scripted(save: { _ in
        await withTaskGroup { group in for _ in 0..<40 { group.addTask { await Task.yield() } } }
      }))
    var reports = await launch(core)
    core.receive(LifecycleEvent(.pause(for: .operator)))
    let report = try #require(await reports.next())
    let saves = report.entries.filter { $0.notification == ShouldSaveState.self }
    #expect(saves.count == 3 + hooks && saves.allSatisfy(\.outcome.isCompleted))
    #expect(report.problems.count == hooks)
    for _ in 0..<hooks * children { release.signal() }
    try await eventually { core.executor.isQuiet }
    core.close()
  }

  /// However many child tasks block, a save can begin.
  @Test(.timeLimit(.minutes(5))) func childTasksLeaveHalfOfTheThreads() async throws {
    let executor = HookExecutor()
    try executor.listen()
    let (half, count) = (HookExecutor.extraThreads / 2, 300)
    let (blocked, release) = (Log(), Semaphore())
    for _ in 0..<count {
      Task.detached(executorPreference: executor) {
        blocked.add("one")
        release.wait()
      }
    }
    try await eventually { blocked.all.count == half }
    for _ in 0..<200 {
      let ran = Gate()
      executor.enqueue(.work { ran.open() })
      await ran.wait()
    }
    #expect(blocked.all.count == half)
    for _ in 0..<count { release.signal() }
    try await eventually { blocked.all.count == count }
    executor.close()
  }

  /// An item that was left to the thread that listens, which does not come.
  @Test(.timeLimit(.minutes(5))) func anItemRunsThoughTheListenerCannotStart() async throws {
    let during = Mutex<(@Sendable () -> Void)?>(nil)
    let executor = HookExecutor { name, body in
      guard let meanwhile = during.withLock({ $0.take() }) else {
        return Thread.spawn(named: name, body)
      }
      meanwhile()
      return false
    }
    let (begun, other, ended) = (Semaphore(), Semaphore(), Gate())
    during.withLock {
      $0 = {
        executor.enqueue(
          .work {
            begun.signal()
            other.wait()
            ended.open()
          })
        begun.wait()
        executor.enqueue(.work { other.signal() })
      }
    }
    #expect(!executor.listenIfMissing())
    await ended.wait()
    executor.close()
  }

  /// Found by a reading: the 129th actor of its own that waited for a database took the last thread of the saves.
  @Test(.timeLimit(.minutes(5))) func actorsThatBlockLeaveHooksTheirThreads() throws {
    let executor = HookExecutor()
    let (ended, release) = (Semaphore(), Semaphore())
    try executor.listen()
    for _ in 1...200 {
      let lane = Lane(LifecycleSerialExecutor(executor: executor))
      Task(executorPreference: executor) { await lane.block(release) }
    }
    executor.enqueue(.work { ended.signal() })
    #expect(ended.wait(for: .seconds(100)))
    for _ in 1...200 { release.signal() }
    executor.close()
  }

  private actor Lane {
    private let executor: LifecycleSerialExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    init(_ executor: LifecycleSerialExecutor) { self.executor = executor }
    func block(_ release: Semaphore) { release.wait() }
  }

  /// Half of a hundred hooks that block have ended, and the others wait: their threads are there, whatever the bound.
  @Test(.timeLimit(.minutes(5))) func aThreadThatIsIdleNeedsNoRoom() async throws {
    let executor = HookExecutor()
    let (ended, release) = (Semaphore(), Semaphore())
    try executor.listen()
    try await eventually { executor.state.withLock { $0.idle.count == 2 } }
    let mayAdd = executor.state.withLock { state in
      state.threads += HookExecutor.extraThreads
      state.ready.append(.work {})
      defer { _ = state.ready.popFirst() }
      return executor.mayAddThread(state)
    }
    #expect(!mayAdd)
    #expect(executor.addThread())
    executor.enqueue(.work { release.wait() })
    executor.enqueue(.work { ended.signal() })
    #expect(ended.wait(for: .seconds(100)))
    release.signal()
    executor.state.withLock { $0.threads -= HookExecutor.extraThreads }
    executor.close()
  }

  @Test(.timeLimit(.minutes(5))) func aHookThatEndsAfterItsSubjectIsGone() async throws {
    let gate = Gate()
    let ended = Gate()
    func drop() async {
      let (core, begun) = (core(), Gate())
      core.add(
        Scripted(background: { _ in
          begun.open()
          await gate.wait()
          ended.open()
        }))
      var reports = await launch(core)
      core.receive(LifecycleEvent(.pause(for: .operator)))
      await begun.wait()
      core.makeLate()
      _ = await reports.next()
      core.close()
    }
    await drop()
    gate.open()
    await ended.wait()
  }

  @Test(.timeLimit(.minutes(5))) func aSubjectDroppedInItsOwnHook() async throws {
    let dropped = Gate()
    final class Holder: Sendable {
      let subject = Mutex<LifecycleSubject?>(nil)
    }
    let holder = Holder()
    let configuration = configuration
    weak var isAlive: LifecycleCore?
    func start() async throws -> [AnyObject] {
      let subject = LifecycleSubject(configuration: configuration)
      holder.subject.withLock { $0 = subject }
      isAlive = subject.core
      let token = subject.observe(DidEnterBackground.self) { _ in
        let last = holder.subject.withLock { subject in
          defer { subject = nil }
          return subject
        }
        withExtendedLifetime(last) {}
        dropped.open()
      }
      try await subject.start()
      return [token]
    }
    let tokens = try await start()
    holder.subject.withLock { $0 }?.pause(for: .operator)
    await dropped.wait()
    try await eventually { isAlive == nil }
    withExtendedLifetime(tokens) {}
  }

  /// An actor's jobs run in order and never two at once, whatever the number of threads.
  @Test(.timeLimit(.minutes(5))) func aSerialExecutorIsSerial() async throws {
    actor Counter {
      private let executor: LifecycleSerialExecutor
      nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
      private var isInside = false
      private(set) var overlaps = 0
      private(set) var count = 0
      init(_ executor: LifecycleSerialExecutor) { self.executor = executor }
      func add() {
        if isInside { overlaps += 1 }
        isInside = true
        count += 1
        isInside = false
      }
    }
    let core = LifecycleCore(configuration: configuration)
    let counter = Counter(LifecycleSerialExecutor(executor: core.executor))
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 { group.addTask { for _ in 0..<200 { await counter.add() } } }
    }
    #expect(await counter.count == 1600)
    #expect(await counter.overlaps == 0)
    core.close()
  }
}

extension LifecycleCore {
  /// Moves the clock of a test past the deadline of a hook, and past its grace.
  func makeLate() {
    for limit in [configuration.hookTimeout, configuration.cancellationGrace] {
      moveClock(to: now.advanced(by: limit))
      timePassed()
    }
  }
}
