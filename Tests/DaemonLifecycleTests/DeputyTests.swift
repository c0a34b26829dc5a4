import CLinux
import Synchronization
import Testing

@testable import DaemonLifecycle

/// What a test tells the listening thread, as a signal would: the hooks of these events begin on that thread.
private final class Doorbell: LifecycleSource {
  private let descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
  private let events = Mutex<[LifecycleEvent]>([])

  var descriptors: [PolledDescriptor] { [PolledDescriptor(number: descriptor)] }
  func open() {}
  func read(_ ready: PolledDescriptor) -> [LifecycleInput] {
    var count: UInt64 = 0
    _ = CLinux.read(descriptor, &count, 8)
    return events.withLock { events in
      defer { events = [] }
      return events.map { .event($0) }
    }
  }
  func close() -> [LifecycleInput] { [] }
  deinit { _ = CLinux.close(descriptor) }

  func ring(_ kind: LifecycleEvent.Kind) {
    events.withLock { $0.append(LifecycleEvent(kind)) }
    var one: UInt64 = 1
    _ = write(descriptor, &one, 8)
  }
}

/// The leader runs hooks itself: whatever they do, somebody listens.
@Suite struct DeputyTests {
  private let configuration = LifecycleConfiguration(
    signals: .none, hookDeadline: .milliseconds(50), cancellationGrace: .milliseconds(20),
    exitGrace: nil, terminatesWhenLaunchFails: false, logsProblems: false)
  /// For hooks that take their time on a busy machine.
  private var patient: LifecycleConfiguration {
    var configuration = configuration
    configuration.hookDeadline = .seconds(50)
    return configuration
  }

  private func eventually(_ isSo: () -> Bool) async {
    while !isSo(), !Task.isCancelled { try? await Task.sleep(for: .milliseconds(1)) }
  }

  /// Who has nothing to do becomes the deputy, if there is none: so there is something to do until there is one.
  private func untilDeputy(_ executor: HookExecutor) async {
    while !executor.hasDeputy, !Task.isCancelled {
      executor.enqueue(.work {})
      try? await Task.sleep(for: .milliseconds(1))
    }
    await eventually { executor.isQuiet }
  }

  /// A core in the foreground whose leader has a deputy; with a long `patience` that one never takes over.
  private func core(
    _ observers: [any LifecycleObserver], _ configuration: LifecycleConfiguration,
    patience: Duration = .microseconds(100)
  ) async throws -> (LifecycleCore, Doorbell, AsyncStream<LifecycleReport>.Iterator) {
    let executor = HookExecutor(patience: patience)
    let core = LifecycleCore(configuration: configuration, executor: executor)
    let doorbell = Doorbell()
    try core.listen(to: doorbell)
    for observer in observers { core.add(observer, phase: .standard) }
    var reports = core.stream(of: .reports, bufferingNewest: 64, as: LifecycleReport.self)
      .makeAsyncIterator()
    doorbell.ring(.launch)
    _ = await reports.next()
    await untilDeputy(executor)
    return (core, doorbell, reports)
  }

  /// Many short items, one after another: none is long enough for the deputy, and the deadline is heard of all
  /// the same.
  @Test(.timeLimit(.minutes(1))) func aHookThatOnlyYieldsIsCancelledInTime() async throws {
    let stubborn = Scripted(background: { _ in while !Task.isCancelled { await Task.yield() } })
    var (core, doorbell, reports) = try await core(
      [stubborn], configuration, patience: .seconds(3600))
    doorbell.ring(.enterBackground(.operator))
    let report = try #require(await reports.next())
    #expect(report.problems.map { "\($0.outcome)" } == ["timedOut"])
    core.close()
    withExtendedLifetime(stubborn) {}
  }

  /// A class's hook blocks the leader until another event has been heard and another delivery has been made.
  @Test(.timeLimit(.minutes(1))) func theDeputyTakesOverFromALeaderThatIsBlocked() async throws {
    final class Checked: HealthObserver {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
      func checkHealth(_ notification: CheckHealth) { body() }
    }
    let began = Atomic<Int>(0)
    let release = Semaphore()
    let threads = Log()
    let note: @Sendable () -> Void = {
      let worker = HookExecutor.Worker.current.map { ObjectIdentifier($0) }
      threads.add("\(worker?.hashValue ?? 0)")
    }
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
      doorbell.ring(.enterBackground(.operator))
      await eventually { began.load(ordering: .relaxed) == round }
      doorbell.ring(.checkHealth)
      let report = try #require(await reports.next())
      #expect(report.problems.isEmpty)
      #expect(Set(threads.all).count == 2)
      #expect(core.executor.threadCount <= 4)
      threads.clear()
      doorbell.ring(.enterForeground(.operator))
      _ = await reports.next()
      // The next check begins when Swift's pool has answered this one.
      await eventually { core.state.withLock { !$0.machine.health.isChecking } }
      await untilDeputy(core.executor)
    }
    core.close()
    await eventually { core.executor.threadCount == 0 }
    withExtendedLifetime((blocking, checked)) {}
  }

  /// What is ready runs, though the leader is in an item that does not end.
  @Test(.timeLimit(.minutes(1))) func closedWhileTheLeaderIsInAHook() async throws {
    let (began, ran, release) = (Gate(), Gate(), Semaphore())
    let blocking = Scripted(background: { _ in
      began.open()
      release.wait()
    })
    let (core, doorbell, _) = try await core([blocking], patient, patience: .seconds(3600))
    doorbell.ring(.enterBackground(.operator))
    await began.wait()
    core.executor.enqueue(.work { ran.open() })
    core.close()
    await ran.wait()
    release.signal()
    await eventually { core.executor.threadCount == 0 }
    withExtendedLifetime(blocking) {}
  }

  /// Hooks about as long as the deputy's patience, and events from all sides: each is delivered, and there are
  /// never more threads than there may be.
  @Test(.timeLimit(.minutes(2)), arguments: [1, 30, 100, 1000])
  func takingOverAtAnyMoment(microseconds: Int) async throws {
    struct Ping: LifecycleNotification { let number: Int }
    let mostThreads = Atomic<Int>(0)
    let (core, doorbell, reports) = try await core(
      [], patient, patience: .microseconds(microseconds))
    let heard = Mutex<[Int]>([])
    let hook = Hook.closure(for: Ping.self) { ping in
      mostThreads.max(core.executor.threadCount, ordering: .relaxed)
      if ping.number % 3 != 0 { usleep(UInt32(ping.number * 7 % (2 * microseconds + 50))) }
      if ping.number % 5 == 0 { await Task.yield() }
      heard.withLock { $0.append(ping.number) }
    }
    let id = core.add(
      closures: [hook], owner: nil, phase: .standard, name: .closure(file: #fileID, line: #line))
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
    await core.untilIdle()
    #expect(heard.withLock { $0.sorted() } == Array(0..<3 * count))
    // One hook, and the drivers of a call that has just ended.
    #expect(mostThreads.load(ordering: .relaxed) <= 4)
    core.remove(id)
    core.close()
    await eventually { core.executor.threadCount == 0 }
    _ = reports
  }
}
