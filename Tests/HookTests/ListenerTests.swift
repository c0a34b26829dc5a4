// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import DaemonSystemd
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Events for the listening thread, as a signal's would be: their hooks begin on that thread.
private final class Doorbell: LifecyclePart {
  private let descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
  private let events = Mutex<[LifecycleEvent]>([])
  private let readHandler = Mutex<(@Sendable () -> Void)?>(nil)

  /// By the default events an eventfd, which can be written to, would count as lost.
  var descriptors: [PolledDescriptor] {
    [PolledDescriptor(number: descriptor, events: UInt32(POLLIN))]
  }
  func read(_ ready: PolledDescriptor, _ take: (SourceInput) -> Void) -> MonotonicTime? {
    var count: UInt64 = 0
    _ = CLinux.read(descriptor, &count, 8)
    onRead?()
    let arrived = events.withLock { events in
      defer { events = [] }
      return events
    }
    for event in arrived { take(.event(event)) }
    return nil
  }
  deinit { _ = CLinux.close(descriptor) }

  /// Called by the thread that listens.
  var onRead: (@Sendable () -> Void)? {
    get { readHandler.withLock { $0 } }
    set { readHandler.withLock { $0 = newValue } }
  }

  func ring(_ kind: LifecycleRequest? = nil) {
    if let kind { events.withLock { $0.append(LifecycleEvent(kind)) } }
    var one: UInt64 = 1
    _ = write(descriptor, &one, 8)
  }
}

/// The thread that listens runs hooks itself: whatever they do, another one listens.
@Suite struct ListenerTests {
  private let configuration = LifecycleConfiguration(
    signals: [:], hookTimeout: .milliseconds(50), cancellationGrace: .milliseconds(20),
    exitGrace: nil, logging: .off)
  /// For hooks that take their time on a busy machine.
  private var patient: LifecycleConfiguration {
    var configuration = configuration
    configuration.hookTimeout = .seconds(50)
    return configuration
  }

  /// Until the thread that listens will run the next hook itself.
  private func untilIdle(_ executor: HookExecutor) async throws {
    try await eventually { executor.isQuiet && executor.state.withLock { !$0.idle.isEmpty } }
  }

  /// A core in the foreground, with an idle thread.
  private func core(
    _ observers: [any LifecycleObserver], _ configuration: LifecycleConfiguration,
    virtualTime: VirtualTime? = nil
  ) async throws -> (LifecycleCore, Doorbell, AsyncStream<LifecycleReport>.Iterator) {
    let core = LifecycleCore(configuration: configuration, virtualTime: virtualTime)
    let doorbell = Doorbell()
    try core.listen(to: doorbell)
    for observer in observers { core.add(observer) }
    var reports = core.stream(of: LifecycleReport.self, bufferingNewest: 64)
      .makeAsyncIterator()
    core.launch { true }
    _ = await reports.next()
    try await untilIdle(core.executor)
    return (core, doorbell, reports)
  }

  /// Many short items, one after another: the deadline is noticed all the same.
  @Test(.timeLimit(.minutes(5))) func aHookThatOnlyYieldsIsCancelledInTime() async throws {
    let stubborn = Scripted(background: { _ in while !Task.isCancelled { await Task.yield() } })
    var configuration = configuration
    // Its thread may have to wait for a processor.
    configuration.cancellationGrace = .seconds(50)
    var (core, doorbell, reports) = try await core([stubborn], configuration)
    doorbell.ring(.pause(for: .operator))
    let report = try #require(await reports.next())
    #expect(report.problems.map { "\($0.outcome)" } == ["timedOut"])
    core.close()
  }

  /// What is posted, and says which thread lets go of it.
  private struct Note: CustomNotification {
    let payload: Payload

    final class Payload: Sendable {
      let (executor, log): (HookExecutor, Log)
      init(_ executor: HookExecutor, _ log: Log) { (self.executor, self.log) = (executor, log) }
      deinit { log.add(executor.isOnListener ? "listener" : "worker") }
    }

    init(_ core: LifecycleCore, _ log: Log) { payload = Payload(core.executor, log) }
  }

  /// The deinit of what was posted is user code. Here the thread that listens answers, since it gives the hook before it up.
  @Test(.timeLimit(.minutes(5))) func theListenerLetsGoOfNoPost() async throws {
    let (log, begun, release) = (Log(), Gate(), Semaphore())
    let blocking = Scripted(save: { _ in
      begun.open()
      release.wait()
    })
    let (core, doorbell, _) = try await core([blocking], patient, virtualTime: VirtualTime())
    doorbell.ring(.saveState)
    await begun.wait()
    core.handle(.post(LifecyclePost(Note(core, log)), inside: nil))
    doorbell.onRead = { [weak core] in core?.makeLate() }
    doorbell.ring()
    try await eventually { !log.all.isEmpty }
    #expect(log.all == ["worker"])
    release.signal()
    core.close()
    withExtendedLifetime(blocking) {}
  }

  /// What a stream has no room for is dropped by the thread that delivers.
  @Test(.timeLimit(.minutes(5))) func theListenerDropsNothingOfAStream() async throws {
    let log = Log()
    let (core, doorbell, _) = try await core([], patient, virtualTime: VirtualTime())
    let stream = core.stream(of: Note.self, bufferingNewest: 1)
    for number in 0..<5 {
      doorbell.ring(.post(Note(core, log)))
      try await eventually { log.all.count == number }
    }
    #expect(log.all == ["worker", "worker", "worker", "worker"])
    withExtendedLifetime(stream) {}
    core.close()
  }

  /// The thread that has received the event runs its hook.
  @Test(.timeLimit(.minutes(5))) func theListenerRunsTheHookItself() async throws {
    let listening = Atomic<UInt>(0)
    let calling = Atomic<UInt>(0)
    let observer = Scripted(background: { _ in
      calling.store(clinux_this_thread(), ordering: .relaxed)
    })
    var (core, doorbell, reports) = try await core([observer], patient)
    doorbell.onRead = { listening.store(clinux_this_thread(), ordering: .relaxed) }
    for _ in 1...20 {
      doorbell.ring(.pause(for: .operator))
      _ = await reports.next()
      #expect(calling.load(ordering: .relaxed) == listening.load(ordering: .relaxed))
      doorbell.ring(.resume(for: .operator))
      _ = await reports.next()
      try await untilIdle(core.executor)
    }
    core.close()
  }

  /// A class's hook blocks its thread until another event has been received and another delivery has been made.
  @Test(.timeLimit(.minutes(5))) func anotherThreadListensWhileAHookBlocks() async throws {
    final class Checked: HealthObserver {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
      func checkHealth(_ notification: CheckHealth) { body() }
    }
    let began = Atomic<Int>(0)
    let release = Semaphore()
    let threads = Log()
    let note: @Sendable () -> Void = { threads.add("\(clinux_this_thread())") }
    let blocking = Scripted(background: { _ in
      note()
      began.add(1, ordering: .relaxed)
      release.wait()
    })
    let checked = Checked {
      note()
      release.signal()
    }
    var (core, doorbell, reports) = try await core([blocking, checked], patient)
    for round in 1...5 {
      doorbell.ring(.pause(for: .operator))
      try await eventually { began.load(ordering: .relaxed) == round }
      doorbell.ring(.checkHealth)
      let report = try #require(await reports.next())
      #expect(report.problems.isEmpty)
      #expect(Set(threads.all).count == 2)
      threads.clear()
      doorbell.ring(.resume(for: .operator))
      _ = await reports.next()
      // The next check begins when Swift's pool has answered this one.
      try await eventually { core.state.withLock { !$0.machine.health.isChecking } }
      try await untilIdle(core.executor)
    }
    // Those that a busy machine brings, where a hook waits for a processor, end when they are idle.
    try await eventually { core.executor.threadCount == 3 }
    core.close()
    try await eventually { core.executor.threadCount == 0 }
  }

  /// What is ready runs, though the thread that listened is in an item that does not end.
  @Test(.timeLimit(.minutes(5))) func closedWhileAHookBlocks() async throws {
    let (began, ran, release) = (Gate(), Gate(), Semaphore())
    let blocking = Scripted(background: { _ in
      began.open()
      release.wait()
    })
    let (core, doorbell, _) = try await core([blocking], patient)
    doorbell.ring(.pause(for: .operator))
    await began.wait()
    core.executor.enqueue(.work { ran.open() })
    core.close()
    await ran.wait()
    release.signal()
    try await eventually { core.executor.threadCount == 0 }
  }

  /// Hooks about as long as it takes to change the thread that listens, and events from all sides: each is delivered, and there are
  /// never more threads than there may be.
  @Test(.timeLimit(.minutes(5)), arguments: [1, 30, 100, 1000])
  func handingOverAtAnyMoment(microseconds: Int) async throws {
    struct Ping: CustomNotification { let number: Int }
    let mostThreads = Atomic<Int>(0)
    let (core, doorbell, reports) = try await core([], patient)
    let heard = Mutex<[Int]>([])
    let hook = Hook.closure(for: Ping.self) { ping in
      mostThreads.max(core.executor.threadCount, ordering: .relaxed)
      if ping.number % 3 != 0 { usleep(UInt32(ping.number * 7 % (2 * microseconds + 50))) }
      if ping.number % 5 == 0 { await Task.yield() }
      heard.withLock { $0.append(ping.number) }
    }
    let id = core.add(
      closures: [hook], owner: nil, .init(), name: .closure(file: #fileID, line: #line))
    let count = 150
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        for number in 0..<count { doorbell.ring(.post(Ping(number: number))) }
      }
      for task in 1...2 {
        group.addTask {
          for number in 0..<count {
            let report = await core.post(Ping(number: task * count + number))
            #expect(report.problems.isEmpty)
          }
        }
      }
      group.addTask {
        for _ in 0..<count { doorbell.ring(.saveState) }
      }
    }
    try await eventually { core.rest.isIdle }
    #expect(heard.withLock { $0.sorted() } == Array(0..<3 * count))
    #expect(mostThreads.load(ordering: .relaxed) <= HookExecutor.extraThreads + 2)
    // Those that a busy machine brings, where a hook waits for a processor, end when they are idle.
    try await eventually { core.executor.threadCount == 3 }
    core.remove(id)
    core.close()
    try await eventually { core.executor.threadCount == 0 }
    _ = reports
  }
}
