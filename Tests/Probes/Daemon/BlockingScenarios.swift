// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleTraces
import Dispatch
import Glibc
import Synchronization

// Daemons in which something does not end: the pool, Dispatch, the main actor, a hook.

/// Every thread of the cooperative pool is in a blocking call (and, `dispatch`, so are Dispatch's).
///
/// `main`: the caller is on the main actor. `stuck`: an actor that sits in the blocked pool is an
/// observer too.
let blocked: @Sendable ([String]) async throws -> Void = { arguments in
  if arguments.contains("main") {
    try await blockedOnMainActor(arguments)
  } else {
    try await blockedAnywhere(arguments)
  }
}

@MainActor func blockedOnMainActor(_ arguments: [String]) async throws {
  try await blockedAnywhere(arguments)
}

nonisolated(nonsending) func blockedAnywhere(_ arguments: [String]) async throws {
  let lifecycle = LifecycleSubject(
    // Nothing is late on a busy machine but what is stuck.
    configuration: .init(
      hookTimeout: .seconds(arguments.contains("stuck") ? 1 : 10),
      cancellationGrace: .milliseconds(300), exitGrace: .seconds(10)))
  lifecycle.addObserver(Logger("class"))
  lifecycle.addObserver(IdleActor())
  lifecycle.addObserver(LaneActor(lifecycle))
  lifecycle.addObserver(MainObserver())
  let stuck = StuckActor()
  if arguments.contains("stuck") { lifecycle.addObserver(stuck) }
  try await lifecycle.start()
  if arguments.contains("stuck") { stick(stuck) }
  blockPool()
  // After the pool, whose threads are Dispatch's too.
  if arguments.contains("dispatch") { blockDispatch() }
  say("blocked")
  finish(await lifecycle.waitUntilTerminated())
}

/// Returns when the actor is in its blocking call.
private func stick(_ stuck: StuckActor) {
  let isIn = DispatchSemaphore(value: 0)
  Task.detached { await stuck.block(isIn) }
  isIn.wait()
}

actor IdleActor: SaveObserver {
  func shouldSaveState(_ notification: ShouldSaveState) { say("actor save") }
}

actor LaneActor: SaveObserver {
  private let executor: LifecycleSerialExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let clock: LifecycleClock
  init(_ lifecycle: LifecycleSubject) {
    executor = lifecycle.makeSerialExecutor()
    clock = lifecycle.clock
  }
  func shouldSaveState(_ notification: ShouldSaveState) async throws {
    try await clock.sleep(for: .milliseconds(20))
    say("lane save")
  }
}

@MainActor final class MainObserver: SaveObserver {
  nonisolated init() {}
  func shouldSaveState(_ notification: ShouldSaveState) { say("main save") }
}

actor StuckActor: SaveObserver {
  func block(_ isIn: DispatchSemaphore) {
    isIn.signal()
    blockThread()
  }
  func shouldSaveState(_ notification: ShouldSaveState) { say("stuck save") }
}

/// Occupies every thread of the cooperative pool for 30 s, and returns when they are (but the caller's own,
/// if it is one: that is taken as soon as the caller suspends).
func blockPool() {
  let started = DispatchSemaphore(value: 0)
  for _ in 0..<64 {
    Task.detached {
      started.signal()
      blockThread()
    }
  }
  while started.wait(timeout: .now() + .milliseconds(300)) == .success {}
}

/// 100 blocked items on each of Dispatch's global queues.
func blockDispatch() {
  for quality: DispatchQoS.QoSClass in [
    .background, .utility, .default, .userInitiated, .userInteractive,
  ] {
    for _ in 0..<100 { DispatchQueue.global(qos: quality).async { blockThread() } }
  }
}

/// A hook that blocks the main actor, and a class observer that is not on it.
let blockedMain: @Sendable ([String]) async throws -> Void = { _ in
  let lifecycle = LifecycleSubject(
    configuration:
      .init(hookTimeout: .milliseconds(500), cancellationGrace: .milliseconds(300)))
  lifecycle.addObserver(Logger("class"))
  lifecycle.addObserver(MainObserver())
  lifecycle.addObserver(BlocksMain())
  try await lifecycle.start(saying: "blocked")
}

@MainActor final class BlocksMain: BackgroundObserver {
  nonisolated init() {}
  func didEnterBackground(_ notification: DidEnterBackground) { blockThread() }
}

/// More observers that block their thread than any pool has threads, then one that saves.
let blockers: @Sendable ([String]) async throws -> Void = { arguments in
  let lifecycle = LifecycleSubject(
    configuration:
      .init(
        cancellationGrace: .milliseconds(50), stopTimeout: .seconds(60), exitGrace: .seconds(30)))
  let count = Int(arguments.first ?? "") ?? 20
  lifecycle.addObserver(Logger("healthy"))
  for _ in 0..<count {
    lifecycle.addObserver(BlockingObserver(), timeout: .milliseconds(250))
  }
  let result = try await lifecycle.run()
  // Those that a busy machine brings, where a hook waits for a processor, end when they are idle. The one that listens, a
  // spare one and, with Swift 6.2, this one stay.
  for _ in 0..<2000 where threadCount() > count + 3 { usleep(10_000) }
  say("threads \(threadCount())")
  finish(result)
}

final class BlockingObserver: BackgroundObserver {
  func didEnterBackground(_ notification: DidEnterBackground) { blockThread() }
}

/// Its pause never ends, and it says when it has saved.
let hosted: @Sendable ([String]) async throws -> Void = { _ in
  let lifecycle = LifecycleSubject()
  lifecycle.addObserver(HangingObserver(blocks: false))
  try await lifecycle.start(
    saying: "started", lifecycle.observe(ShouldSaveState.self) { _ in say("saved") })
}

/// Its pause takes two seconds, or (`long`) a minute, unless it is cut short, and its save a while. What comes within a
/// minute is one stop, so that a busy machine has the time.
let escalation: @Sendable ([String]) async throws -> Void = { arguments in
  let lifecycle = LifecycleSubject(
    configuration: .init(hookTimeout: .seconds(60), escalationDelay: .seconds(60)))
  let pause = lifecycle.observe(DidEnterBackground.self) { notification in
    say("pausing: \(notification.cause)")
    do {
      try await lifecycle.clock.sleep(for: .seconds(arguments.contains("long") ? 60 : 2))
      say("finished")
    } catch {
      say("cut short")
      throw error
    }
  }
  let save = lifecycle.observe(ShouldSaveState.self) { _ in
    say("saving")
    try await lifecycle.clock.sleep(for: .milliseconds(500))
    say("saved")
  }
  let reload = lifecycle.observe(ShouldReload.self) { _ in say("reload") }
  try await lifecycle.start(saying: "started", pause, save, reload)
}

/// A hook that never returns: `async`, suspended for ever, or `blocking`.
let hang: @Sendable ([String]) async throws -> Void = { arguments in
  var configuration = LifecycleConfiguration(
    cancellationGrace: .milliseconds(200), stopTimeout: .seconds(60), escalationDelay: .zero)
  configuration.signals[.sigquit] = .describe
  configuration.interfaces.append(.threadTraces)
  let lifecycle = LifecycleSubject(configuration: configuration)
  lifecycle.addObserver(Logger("saver"))
  // Its own, since on a slow machine a launch's hook takes a while.
  let deadline = arguments.contains("slow") ? Duration.seconds(20) : .milliseconds(300)
  let hanging = HangingObserver(blocks: arguments.contains("blocking"))
  lifecycle.addObserver(hanging, timeout: deadline)
  try await lifecycle.start(saying: "started")
}

final class HangingObserver: BackgroundObserver {
  let blocks: Bool
  init(blocks: Bool) { self.blocks = blocks }
  func didEnterBackground(_ notification: DidEnterBackground) async {
    say("hanging")
    if blocks { blockThread() }
    // Never resumed; leaked on purpose, and so not a checked continuation, which would say so.
    await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
  }
}

/// On SIGUSR1 an observer removes itself, a closure ends its own observation, and a work throws: each has the last reference
/// to an object whose deinit asks the lifecycle and, with `blocks`, never ends.
let leaving: @Sendable ([String]) async throws -> Void = { arguments in
  let lifecycle = LifecycleSubject(configuration: .init(hookTimeout: .seconds(2)))
  let blocks = arguments.contains("blocks")
  let token = Mutex<LifecycleToken?>(nil)
  lifecycle.addObserver(Leaver("observer", lifecycle, blocks))
  let ends = lifecycle.observe(DidEnterBackground.self) {
    [object = LeavingObject("closure", lifecycle, blocks)] _ in
    token.withLock { $0.take() }?.cancel()
    withExtendedLifetime(object) {}
  }
  token.withLock { $0 = ends }
  // The second error has the first one forgotten.
  let runs = Atomic(0)
  lifecycle.addTask(name: "work", restarting: .backoff()) {
    if runs.add(1, ordering: .relaxed).newValue > 2 { try await Task.sleep(for: .seconds(1000)) }
    throw LeavingError(object: LeavingObject("error", lifecycle, blocks))
  }
  try await lifecycle.start(
    saying: "started", lifecycle.observe(ShouldSaveState.self) { _ in say("saved") })
}

private struct LeavingError: Error { let object: LeavingObject }

private final class LeavingObject: Sendable {
  private let name: String
  private let blocks: Bool
  private let lifecycle: LifecycleSubject
  init(_ name: String, _ lifecycle: LifecycleSubject, _ blocks: Bool) {
    (self.name, self.lifecycle, self.blocks) = (name, lifecycle, blocks)
  }
  deinit {
    _ = lifecycle.state
    say("gone: \(name)")
    if blocks { blockThread() }
  }
}

private final class Leaver: BackgroundObserver {
  private let object: LeavingObject
  private let lifecycle: LifecycleSubject
  init(_ name: String, _ lifecycle: LifecycleSubject, _ blocks: Bool) {
    (object, self.lifecycle) = (LeavingObject(name, lifecycle, blocks), lifecycle)
  }
  func didEnterBackground(_ notification: DidEnterBackground) { lifecycle.removeObserver(self) }
}
