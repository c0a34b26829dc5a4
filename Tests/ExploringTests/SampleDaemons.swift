// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleExploring
import DaemonLifecycleTesting
import Synchronization

/// What the check of a sample throws.
struct Broken: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

struct DiskFull: Error {}

typealias ExploredDaemon =
  @Sendable (ExploredRun) async throws -> @Sendable () async throws -> Void

/// A daemon with one defect, or none, as an exploration sees it.
struct SampleDaemon: CustomStringConvertible, Sendable {
  let description: String
  /// What the error begins with; `nil` for a daemon without a defect.
  let finding: String?
  let daemon: ExploredDaemon

  static let all = [
    pollGoesOn, savedBeforeTheDrain, lostReload, closedTwice, waitsForItself, lostIncrement,
    forgottenFailure, twoLoops, jobs, mainActor,
  ]

  static let pollGoesOn = SampleDaemon(description: "a poll after the pause", finding: "polled") {
    run in
    final class Poller: ForegroundObserver, BackgroundObserver, Sendable {
      let isPaused = Atomic<Bool>(false)
      let late = Atomic<Int>(0)
      let clock: LifecycleClock
      init(_ clock: LifecycleClock) { self.clock = clock }

      func willEnterForeground(_ notification: WillEnterForeground) {
        isPaused.store(false, ordering: .relaxed)
        Task {
          while !isPaused.load(ordering: .relaxed) {
            try await clock.sleep(for: .seconds(1))
            if isPaused.load(ordering: .relaxed) { late.add(1, ordering: .relaxed) }
          }
        }
      }
      func didEnterBackground(_ notification: DidEnterBackground) {
        isPaused.store(true, ordering: .relaxed)
      }
    }
    let poller = Poller(run.mock.clock)
    run.mock.addObserver(poller)
    return { if poller.late.load(ordering: .relaxed) > 0 { throw Broken("polled while paused") } }
  }

  static let savedBeforeTheDrain = SampleDaemon(
    description: "saved before the drain", finding: "saved"
  ) { run in
    actor Orders: BackgroundObserver {
      private(set) var accepted = 0
      private(set) var saved = 0
      func accept() { accepted += 1 }
      func didEnterBackground(_ notification: DidEnterBackground) { saved = accepted }
    }
    let orders = Orders()
    run.mock.addForeground(draining: .seconds(5)) { round in
      while !round.isEnding {
        try await run.mock.clock.sleep(for: .seconds(1))
        await orders.accept()
      }
    }
    run.mock.addObserver(orders)
    return {
      guard run.mock.exitResult != nil else { return }
      let (saved, accepted) = (await orders.saved, await orders.accepted)
      if saved != accepted { throw Broken("saved \(saved) of \(accepted)") }
    }
  }

  static let lostReload = SampleDaemon(description: "a lost reload", finding: "version") { run in
    actor Service: ReloadObserver {
      private(set) var settings = (version: 0, polls: 0)
      private(set) var reloads = 0
      func poll() async {
        var settings = settings
        await Task.yield()  // reads something
        settings.polls += 1
        self.settings = settings
      }
      func shouldReload(_ notification: ShouldReload) {
        settings.version += 1
        reloads += 1
      }
    }
    let service = Service()
    run.mock.addObserver(service)
    run.mock.addForeground {
      for try await _ in run.mock.ticks(every: .seconds(1)) { await service.poll() }
    }
    return {
      let (version, reloads) = (await service.settings.version, await service.reloads)
      if version != reloads { throw Broken("version \(version) after \(reloads) reloads") }
    }
  }

  static let closedTwice = SampleDaemon(description: "closed twice", finding: "closed") { run in
    final class Connection: ForegroundObserver, BackgroundObserver, TerminationObserver {
      let isOpen = Atomic<Bool>(false)
      let mistakes = Atomic<Int>(0)
      func willEnterForeground(_ notification: WillEnterForeground) {
        isOpen.store(true, ordering: .relaxed)
      }
      func didEnterBackground(_ notification: DidEnterBackground) { close() }
      func willTerminate(_ notification: WillTerminate) { close() }
      func close() {
        if !isOpen.exchange(false, ordering: .relaxed) { mistakes.add(1, ordering: .relaxed) }
      }
    }
    let connection = Connection()
    run.mock.addObserver(connection)
    return {
      if connection.mistakes.load(ordering: .relaxed) > 0 { throw Broken("closed twice") }
    }
  }

  static let waitsForItself = SampleDaemon(
    description: "a hook that waits for the end", finding: "Service"
  ) { run in
    final class Service: ReloadObserver {
      let lifecycle: any LifecycleObservable
      init(_ lifecycle: any LifecycleObservable) { self.lifecycle = lifecycle }
      func shouldReload(_ notification: ShouldReload) async {
        lifecycle.terminate()
        for await _ in lifecycle.notifications(of: WillTerminate.self) {}
      }
    }
    run.mock.addObserver(Service(run.mock))
    return {}
  }

  static let lostIncrement = SampleDaemon(description: "a lost increment", finding: "count") {
    run in
    actor Counter: SaveObserver, PressureObserver {
      private(set) var count = 0
      private(set) var calls = 0
      func add() async {
        calls += 1
        let old = count
        await Task.yield()
        count = old + 1
      }
      func shouldSaveState(_ notification: ShouldSaveState) async { await add() }
      func didReceivePressure(_ notification: DidReceivePressure) async { await add() }
    }
    let counter = Counter()
    run.mock.addObserver(counter)
    run.mock.addForeground {
      for try await _ in run.mock.ticks(every: .seconds(1)) { await counter.add() }
    }
    return {
      let (count, calls) = (await counter.count, await counter.calls)
      if count != calls { throw Broken("count \(count) of \(calls)") }
    }
  }

  static let forgottenFailure = SampleDaemon(
    description: "a failed save that is forgotten", finding: "lost"
  ) { run in
    actor Bookmarks: SaveObserver {
      private(set) var (page, saved, isDirty) = (0, 0, false)
      let fails: @Sendable () -> Bool
      init(fails: @escaping @Sendable () -> Bool) { self.fails = fails }
      func turn() { (page, isDirty) = (page + 1, true) }
      func shouldSaveState(_ notification: ShouldSaveState) throws {
        guard isDirty else { return }
        isDirty = false
        if fails() { throw DiskFull() }
        saved = page
      }
    }
    let bookmarks = Bookmarks { run.shouldFail("disk full") }
    run.mock.addObserver(bookmarks)
    run.mock.addForeground { await bookmarks.turn() }
    // Nothing ends this one but the end of the run.
    Task { while true { try? await run.mock.clock.sleep(for: .seconds(1)) } }
    return {
      guard run.mock.exitResult?.exitStatus == 0 else { return }
      let (page, saved) = (await bookmarks.page, await bookmarks.saved)
      if page != saved { throw Broken("lost page \(page), has \(saved)") }
    }
  }

  static let twoLoops = SampleDaemon(description: "two loops after a resume", finding: "2 loops") {
    run in
    @MainActor final class Sampler: ForegroundObserver, BackgroundObserver {
      private(set) var running = 0
      private var isPaused = false
      let clock: LifecycleClock
      nonisolated init(_ clock: LifecycleClock) { self.clock = clock }
      func willEnterForeground(_ notification: WillEnterForeground) {
        isPaused = false
        Task {
          running += 1
          while !isPaused { try await clock.sleep(for: .seconds(1)) }
          running -= 1
        }
      }
      func didEnterBackground(_ notification: DidEnterBackground) { isPaused = true }
    }
    let sampler = Sampler(run.mock.clock)
    run.mock.addObserver(sampler)
    return {
      let running = await sampler.running
      if running > 1 { throw Broken("\(running) loops") }
    }
  }

  /// Jobs are done, or handed back; a save that fails is tried again by the next one.
  static let jobs = SampleDaemon(description: "jobs that are handed back", finding: nil) { run in
    actor Queue: SaveObserver {
      private var waiting = Array(0..<5)
      private(set) var (done, saved) = ([Int](), [Int]())
      let fails: @Sendable () -> Bool
      init(fails: @escaping @Sendable () -> Bool) { self.fails = fails }
      func take() -> Int? { waiting.popLast() }
      func finish(_ job: Int) { done.append(job) }
      func handBack(_ job: Int) { waiting.append(job) }
      var count: Int { waiting.count + done.count }
      func shouldSaveState(_ notification: ShouldSaveState) throws {
        if fails() { throw DiskFull() }
        saved = done
      }
    }
    let queue = Queue { run.shouldFail("disk full") }
    run.mock.addObserver(queue)
    run.mock.addForeground(draining: .seconds(5)) { round in
      while !round.isEnding, let job = await queue.take() {
        let isDone = try await round.finish(within: .seconds(2)) {
          try await run.mock.clock.sleep(for: .seconds(3))
          await queue.finish(job)
        }
        if !isDone { await queue.handBack(job) }
      }
    }
    return {
      guard let ending = run.mock.exitResult else { return }
      let (count, done, saved) = (await queue.count, await queue.done, await queue.saved)
      if count != 5 { throw Broken("\(count) of 5 jobs") }
      if ending.exitStatus == 0, done != saved { throw Broken("saved \(saved) of \(done)") }
    }
  }

  /// A main actor's state, with a body, a stream and a child task.
  static let mainActor = SampleDaemon(description: "a daemon on the main actor", finding: nil) {
    run in
    @MainActor final class Model: SaveObserver, ReloadObserver {
      private(set) var (ticks, saved, reloads, seen) = (0, 0, 0, 0)
      nonisolated init() {}
      func tick() { ticks += 1 }
      func see() {
        MainActor.preconditionIsolated()
        seen += 1
      }
      func shouldSaveState(_ notification: ShouldSaveState) async {
        async let ticks = ticks
        saved = await ticks
      }
      func shouldReload(_ notification: ShouldReload) { reloads += 1 }
    }
    let model = Model()
    run.mock.addObserver(model)
    run.mock.addForeground {
      for try await _ in run.mock.ticks(every: .milliseconds(500)) { await model.tick() }
    }
    let reloads = run.mock.notifications(of: ShouldReload.self, bufferingNewest: 100)
    Task { for await _ in reloads { await model.see() } }
    return {
      let (ticks, saved) = await (model.ticks, model.saved)
      let (reloads, seen) = await (model.reloads, model.seen)
      if reloads != seen { throw Broken("\(seen) of \(reloads) reloads") }
      if run.mock.exitResult != nil, ticks != saved { throw Broken("saved \(saved) of \(ticks)") }
    }
  }
}
