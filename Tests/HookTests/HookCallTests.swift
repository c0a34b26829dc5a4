// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// What a task that a hook has started knows of the hook: its own call for ever, and never a later one.
@Suite struct HookCallTests {
  struct Ping: CustomNotification {}

  /// Where a task says it is, and whether that is still the case.
  private static func place() -> String {
    guard let call = HookCall.current else { return "nowhere" }
    // The observers' registrations are numbered from 1.
    return "\(call.entry.id.value - 1) \(LifecycleContext.current != nil)"
  }

  private static let kinds = [
    "task", "task in a task", "task in a child task", "task in a group", "task in an async let",
    "task of a cancelled task", "stream",
  ]

  /// Starts a task that outlives the hook, and returns it once it has begun.
  private static func start(
    _ kind: String, until gate: Gate, _ said: Log
  ) async -> Task<Void, Never> {
    let body: @Sendable () async -> Void = {
      await gate.wait()
      said.add(place())
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
  @Test(.timeLimit(.minutes(1)), arguments: kinds)
  func aTaskThatOutlivesItsHookSeesNoOther(kind: String) async throws {
    for round in 0..<20 {
      let mock = MockLifecycleSubject()
      let (gate, said, own) = (Gate(), Log(), Log())
      let started = Mutex<Task<Void, Never>?>(nil)
      let tokens = (0..<10).map { index in
        mock.observe(Ping.self) { _ in
          own.add(Self.place())
          if index == 3 {
            let task = await Self.start(kind, until: gate, said)
            started.withLock { $0 = task }
            if round % 2 == 1 { await Task.yield() }
          }
          own.add(Self.place())
          if index == 7 {
            gate.open()
            await started.withLock { $0 }?.value
          }
        }
      }
      try await mock.settled()
      _ = await mock.post(Ping())
      #expect(said.all == ["3 false"])
      #expect(own.all == (0..<10).flatMap { ["\($0) true", "\($0) true"] })
      withExtendedLifetime(tokens) {}
    }
  }

  /// Child tasks are part of the hook, and a detached task is not.
  @Test func whatIsPartOfAHook() async throws {
    let mock = MockLifecycleSubject()
    let said = Log()
    let tokens = (0..<5).map { _ in
      mock.observe(Ping.self) { _ in
        async let child = Self.place()
        said.add(await child)
        await withTaskGroup(of: String.self) { group in
          group.addTask { Self.place() }
          for await place in group { said.add(place) }
        }
        said.add(await Task { Self.place() }.value)
        said.add(await Task.detached { Self.place() }.value)
      }
    }
    try await mock.settled()
    _ = await mock.post(Ping())
    #expect(said.all == (0..<5).flatMap { ["\($0) true", "\($0) true", "\($0) true", "nowhere"] })
    withExtendedLifetime(tokens) {}
  }

  /// A leftover task does nothing in the name of a hook that has ended: its post is one of its own.
  @Test(.timeLimit(.minutes(1))) func aLeftoverTaskPostsForItself() async throws {
    struct Pong: CustomNotification {}
    let mock = MockLifecycleSubject()
    let log = Log()
    let (gate, posts) = (Gate(), Gate())
    let tokens = [
      mock.observe(Ping.self) { [unowned mock] _ in
        Task {
          await gate.wait()
          posts.open()
          _ = await mock.post(Pong())
        }
      },
      mock.observe(Ping.self) { _ in
        gate.open()
        await posts.wait()
        log.add("ping ends")
      },
      mock.observe(Pong.self) { _ in log.add("pong") },
    ]
    try await mock.settled()
    _ = await mock.post(Ping())
    try await eventually { log.all.count >= 2 }
    #expect(log.all == ["ping ends", "pong"])
    withExtendedLifetime(tokens) {}
  }
}
