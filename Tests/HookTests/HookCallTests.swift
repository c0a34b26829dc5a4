// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// What a task that a hook has started knows of the hook: its own call for ever, and never a later one.
@Suite struct HookCallTests {
  struct Ping: CustomNotification {}

  /// The observers, by the calls of their hooks.
  private final class Places: Sendable {
    private let all = Mutex<[(call: HookCall, observer: Int)]>([])

    /// Called in the hook.
    func enter(_ observer: Int) {
      if let call = HookCall.current { all.withLock { $0.append((call, observer)) } }
    }

    /// Where a task says it is, and whether that is still the case.
    var current: String {
      guard let call = HookCall.current else { return "nowhere" }
      let observer = all.withLock { all in all.first { $0.call === call }?.observer }
      return "\(observer ?? -1) \(LifecycleContext.current != nil)"
    }
  }

  private static let kinds = [
    "task", "task in a task", "task in a child task", "task in a group", "task in an async let",
    "task of a cancelled task", "stream",
  ]

  /// Starts a task that outlives the hook, and returns it once it has begun.
  private static func start(
    _ kind: String, until gate: Gate, _ said: Log, _ places: Places
  ) async -> Task<Void, Never> {
    let body: @Sendable () async -> Void = {
      await gate.wait()
      said.add(places.current)
    }
    switch kind {
    case "task in a task":
      return await Task { Task { await body() } }.value
    case "task in a child task":
      return await withTaskGroup(of: Task<Void, Never>.self) { group in
        group.addTask { Task { await body() } }
        return await group.next()!
      }
    case "task in a group":
      return Task {
        await withTaskGroup(of: Void.self) { group in group.addTask { await body() } }
      }
    case "task in an async let":
      async let task = Task { await body() }
      return await task
    case "task of a cancelled task":
      let task = Task { await body() }
      task.cancel()
      return task
    case "stream":
      let stream = AsyncStream<Void> { continuation in
        let task = Task {
          await body()
          continuation.finish()
        }
        continuation.onTermination = { _ in task.cancel() }
      }
      return Task { for await _ in stream {} }
    default: return Task { await body() }
    }
  }

  /// Observers 0…9; the fourth starts a task that is still there in the calls of all others.
  @Test(.timeLimit(.minutes(5)), arguments: kinds)
  func aTaskThatOutlivesItsHookSeesNoOther(kind: String) async throws {
    for round in 0..<20 {
      let mock = MockLifecycleSubject()
      let (gate, said, own, places) = (Gate(), Log(), Log(), Places())
      let started = Mutex<Task<Void, Never>?>(nil)
      for index in 0..<10 {
        mock.on(Ping.self) { _ in
          places.enter(index)
          own.add(places.current)
          if index == 3 {
            let task = await Self.start(kind, until: gate, said, places)
            started.withLock { $0 = task }
            if round % 2 == 1 { await Task.yield() }
          }
          own.add(places.current)
          if index == 7 {
            gate.open()
            await started.withLock { $0 }?.value
          }
        }
      }
      try await mock.waitUntilSettled()
      _ = await mock.post(Ping())
      #expect(said.all == ["3 false"])
      #expect(own.all == (0..<10).flatMap { ["\($0) true", "\($0) true"] })
    }
  }

  /// Child tasks are part of the hook, and a detached task is not.
  @Test func whatIsPartOfAHook() async throws {
    let mock = MockLifecycleSubject()
    let (said, places) = (Log(), Places())
    for index in 0..<5 {
      mock.on(Ping.self) { _ in
        places.enter(index)
        async let child = places.current
        said.add(await child)
        await withTaskGroup(of: String.self) { group in
          group.addTask { places.current }
          for await place in group { said.add(place) }
        }
        said.add(await Task { places.current }.value)
        said.add(await Task.detached { places.current }.value)
      }
    }
    try await mock.waitUntilSettled()
    _ = await mock.post(Ping())
    #expect(said.all == (0..<5).flatMap { ["\($0) true", "\($0) true", "\($0) true", "nowhere"] })
  }

  /// A leftover task does nothing in the name of a hook that has ended: its post is one of its own.
  @Test(.timeLimit(.minutes(5))) func aLeftoverTaskPostsForItself() async throws {
    struct Pong: CustomNotification {}
    let mock = MockLifecycleSubject()
    let log = Log()
    let (gate, posts) = (Gate(), Gate())
    mock.on(Ping.self) { [unowned mock] _ in
      Task {
        await gate.wait()
        posts.open()
        _ = await mock.post(Pong())
      }
    }
    mock.on(Ping.self) { _ in
      gate.open()
      await posts.wait()
      log.add("ping ends")
    }
    mock.on(Pong.self) { _ in log.add("pong") }
    try await mock.waitUntilSettled()
    _ = await mock.post(Ping())
    try await eventually { log.all.count >= 2 }
    #expect(log.all == ["ping ends", "pong"])
  }

  // MARK: What outlives a hook

  /// Keeps all that a hook gives it, and starts tasks that outlive it.
  private final class Keeper: LaunchObserver {
    let kept = Mutex<(DidFinishLaunching, LifecycleContext?)?>(nil)
    let gate: Gate
    init(_ gate: Gate) { self.gate = gate }

    func didFinishLaunching(_ notification: DidFinishLaunching) async {
      kept.withLock { $0 = (notification, LifecycleContext.current) }
      Task { [gate, weak self] in
        await gate.wait()
        _ = self
      }
      Task.detached { [gate, weak self] in
        await gate.wait()
        _ = self
      }
    }
  }

  /// The descriptors are those of its poll, which closes them as it ends.
  private struct Remains: Sendable {
    weak let observer: Keeper?
    weak let core: LifecycleCore?
    weak let poll: EventPoll?
    var isNothing: Bool { observer == nil && core == nil && poll == nil }
  }

  @Test(.offThePool, .timeLimit(.minutes(5))) func whatOutlivesAHookHoldsNoSubject() async throws {
    let gate = Gate()
    var remains: [Remains] = []
    for _ in 0..<1000 {
      let subject = LifecycleSubject(configuration: .init(signals: [:], logging: .off))
      let keeper = Keeper(gate)
      subject.addObserver(keeper)
      try await subject.start()
      #expect(keeper.kept.withLock { $0?.0.context.cause.description } == "launch")
      remains.append(
        Remains(observer: keeper, core: subject.core, poll: subject.core.executor.poll))
      // No more than a few at once, however slow the threads are to end.
      if remains.count % 50 == 0 {
        try await eventually { remains.dropLast().allSatisfy(\.isNothing) }
      }
    }
    try await eventually { remains.allSatisfy(\.isNothing) }
    gate.open()
  }

  /// A context without its subject is that of a hook that has ended.
  @Test func aContextOutlivesItsSubject() async throws {
    var mock: MockLifecycleSubject? = MockLifecycleSubject(state: .launching)
    let keeper = Keeper(Gate())
    mock?.addObserver(keeper)
    _ = try await mock?.launch()
    weak let core = mock?.core
    mock = nil
    try await eventually { core == nil }
    let context = try #require(keeper.kept.withLock { $0?.0.context })
    context.extendDeadline(by: .seconds(1))
    #expect(
      !context.isCurrent && context.timeRemaining == .zero && context.cause.description == "launch")
    keeper.gate.open()
  }

  // MARK: Removal

  /// Removes an observer at the last moment: its hook is the next of a driver that sends messages before.
  private final class Remover: LifecycleHarness {
    let remove = Mutex<(@Sendable () -> Void)?>(nil)
    func willDeliver(_ notification: any LifecycleNotification) {
      if notification is ShouldSaveState { remove.withLock { $0 }?() }
    }
    func didCall(_ call: String) {}
    func didFinish(_ report: LifecycleReport) {}
    var initialState: LifecycleState? { nil }
    func endSetUp(of core: LifecycleCore) {}
    func delays(_ input: DelayedInput) -> Bool { false }
    func inputs(isIdle: Bool) -> [DelayedInput] { [] }
    func waits(isIdle: Bool, sleeping: Int) -> [Sleeper] { [] }
  }

  @Test func noHookBeginsAfterARemoval() async throws {
    let remover = Remover()
    let core = LifecycleCore(
      configuration: .init(signals: [:], logging: .off), initialState: .foreground,
      harness: remover)
    let log = Log()
    let (first, second) = (Listener("first", log), Listener("second", log))
    core.add(first)
    core.add(second)
    try await eventually { core.rest.isIdle }
    log.clear()
    remover.remove.withLock { $0 = { core.remove(owner: second) } }
    core.receive(LifecycleEvent(.pause(for: .operator)))
    try await eventually { core.rest.isIdle }
    #expect(log.all == ["second background", "first background", "first save"])
    remover.remove.withLock { $0 = nil }
    core.close()
  }
}
