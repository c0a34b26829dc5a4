// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// One run of a body. It tells the body when to finish.
///
/// The round is *ending* once a pause, the machine's sleep or a stop has begun. Being marked as ending cancels nothing:
///
/// ```swift
/// try await lifecycle.foreground(draining: .seconds(20)) { round in
///   try await withThrowingDiscardingTaskGroup { connections in
///     for try await client in listener.clients().untilEnding(of: round) {
///       connections.addTask { await serve(client, round) }
///     }  // accepts no new clients
///   }  // waits for running requests
/// }
/// ```
///
/// A round that is ending stays so: a resume begins a new round. Safe to use from any task and thread.
public final class WorkRound: Sendable {
  private struct State {
    var isEnding = false
    /// Whether the body was asked to finish, and was not cancelled.
    var mayFinish = false
    /// Whether the body has returned, or thrown.
    var isOver = false
    /// The handlers, each called once, when the round begins to end; empty from then on.
    var handlers: [Int: @Sendable () -> Void] = [:]
    var lastHandler = 0
    /// Whether the body has been ready: false until it says so, where the foreground waits for that.
    var wasReady: Bool
    /// Why it is not ready, as it says itself.
    var lack: String?
    /// The number of changes of the two.
    var changes: UInt64 = 0
  }
  /// The round whose body the current task is part of.
  @TaskLocal static var current: WorkRound?

  private let state: Mutex<State>
  /// `nil` for a round that a test has made, in real time.
  package let clock: LifecycleClock?
  /// Takes a change: why the body is not ready, and the number of the change, since two threads may call it in either order.
  private let tellReadiness: @Sendable (String?, UInt64) -> Void
  /// When the body has last made progress, in nanoseconds; zero: not yet.
  private let progress = Atomic<Int64>(0)
  /// How many waits of the body are under way, and when the last one ended.
  private let waits = Atomic<Int>(0)
  private let waited = Atomic<Int64>(0)

  package init(
    clock: LifecycleClock?, isReady: Bool = true,
    tellReadiness: @escaping @Sendable (String?, UInt64) -> Void = { _, _ in }
  ) {
    self.clock = clock
    self.tellReadiness = tellReadiness
    state = Mutex(State(wasReady: isReady))
  }

  /// Whether a delivery may wait for the body. A task that the body has started may live for longer.
  @inline(never) var isAwaited: Bool {
    state.withLock { !$0.isOver && ($0.isEnding || !$0.wasReady) }
  }
  @inline(never) func bodyEnded() { state.withLock { $0.isOver = true } }

  /// Reports that the body is ready, such as a server that listens: needed with `readyWithin:`, and after
  /// ``reportNotReady(because:)``. Other calls have no effect.
  ///
  /// ```swift
  /// lifecycle.addForeground(name: "web", readyWithin: .seconds(10)) { round in
  ///   let listener = try Listener(port: 8080)
  ///   round.reportReady()
  ///   for try await client in listener.clients().untilEnding(of: round) {
  ///     await serve(client, round)
  ///   }
  /// }
  /// ```
  public func reportReady() { setReadiness(lack: nil) }

  /// Reports that the body goes on but is not ready, until ``reportReady()``: a database is down, or a queue is too long.
  ///
  /// ```swift
  /// for try await _ in lifecycle.ticks(every: .seconds(5)) {
  ///   do {
  ///     try await poller.poll()
  ///     round.reportReady()
  ///   } catch { round.reportNotReady(because: "\(error)") }
  /// }
  /// ```
  ///
  /// The daemon is not ready meanwhile: ``LifecycleObservable/isReady`` and the readiness file show that, and the log
  /// and the status give the reason. It stays in the foreground, and healthy. A launch that waits for the
  /// body goes on waiting. A reason ends with its round; `restarting` work keeps the reason until it runs again.
  /// <doc:NotReadyForAWhile> tells when not to call this.
  public func reportNotReady(because reason: String) {
    setReadiness(lack: VisibleText.excerpt(reason))
  }

  @inline(never) private func setReadiness(lack: String?) {
    let change: UInt64? = state.withLock { state in
      let isNews = lack != state.lack || lack == nil && !state.wasReady
      state.lack = lack
      if lack == nil { state.wasReady = true }
      if isNews { state.changes += 1 }
      return isNews ? state.changes : nil
    }
    if let change { tellReadiness(lack, change) }
  }

  /// Reports progress, for work that was added with `stallsAfter`: a job is done, a message was answered.
  ///
  /// Elements of `untilEnding(of:)` and results of ``untilEnding(_:)`` count automatically. A call takes some 50 ns,
  /// and no lock.
  public func reportProgress() {
    if let clock { progress.store(clock.now.time.nanoseconds, ordering: .relaxed) }
  }

  var lastProgress: MonotonicTime? { Self.time(progress) }

  private static func time(_ nanoseconds: borrowing Atomic<Int64>) -> MonotonicTime? {
    let time = nanoseconds.load(ordering: .relaxed)
    return time == 0 ? nil : MonotonicTime(nanoseconds: time)
  }

  // MARK: Idle times

  /// A wait for the next element, job or tick begins.
  func beginWait() { waits.add(1, ordering: .relaxed) }

  func endWait() {
    if let clock { waited.store(clock.now.time.nanoseconds, ordering: .relaxed) }
    waits.subtract(1, ordering: .releasing)
  }

  /// When the body has last waited: now, while it does. `nil`: never.
  var lastWait: MonotonicTime? {
    waits.load(ordering: .acquiring) > 0 ? clock?.now.time : Self.time(waited)
  }

  @inline(never) var mayFinish: Bool { state.withLock(\.mayFinish) }

  /// Marks the round as ending, and returns the handlers that are to be called.
  package func beginEnding(mayFinish: Bool = true) -> [@Sendable () -> Void] {
    state.withLock { state in
      (state.isEnding, state.mayFinish) = (true, mayFinish)
      defer { state.handlers = [:] }
      return state.handlers.keys.sorted().compactMap { state.handlers[$0] }
    }
  }

  /// Whether a pause, the machine's sleep or a stop has begun. A server then answers with `Connection: close`; a worker takes no
  /// further job.
  @inline(never) public var isEnding: Bool { state.withLock(\.isEnding) }

  // MARK: Waiting

  /// Returns when the round is ending.
  ///
  /// - Throws: `CancellationError` when the calling task is cancelled before.
  nonisolated(nonsending) public func waitUntilEnding() async throws {
    let sleeper = Sleeper()
    try await withEndingHandler {
      try await sleeper.wait { sleeper.end(throwing: CancellationError()) }
    } onEnding: {
      sleeper.end()
    }
  }

  /// Waits for `operation`, and cancels it once the round is ending: for a wait for the next request or job.
  ///
  /// ```swift
  /// while let job = try await round.untilEnding({ try await queue.next() }) {
  ///   try await work(on: job)
  /// }
  /// ```
  ///
  /// - Parameter operation: The wait, which runs in its own task. It is not begun when the round is ending already.
  /// - Returns: The operation's result, even if it returns just as the round ends: no job that was taken is lost. `nil`
  ///   when the operation was cancelled, or not begun.
  /// - Throws: The error that the operation throws, except the `CancellationError` at the end of the round.
  nonisolated(nonsending) public func untilEnding<T: Sendable>(
    _ operation: @escaping @Sendable () async throws -> T?
  ) async throws -> T? {
    try await resultUntilEnding { () async -> Result<T?, any Error> in
      do { return .success(try await operation()) } catch { return .failure(error) }
    }.get()
  }

  nonisolated(nonsending) func resultUntilEnding<T: Sendable, Failure>(
    _ operation: @escaping @Sendable () async -> Result<T?, Failure>
  ) async -> Result<T?, Failure> {
    if isEnding { return .success(nil) }
    beginWait()
    defer { endWait() }
    let task = Task(operation: operation)
    let result = await withEndingHandler {
      await withTaskCancellationHandler {
        await task.value
      } onCancel: {
        task.cancel()
      }
    } onEnding: {
      task.cancel()
    }
    if case .success(.some) = result { reportProgress() }
    if case .failure(is CancellationError) = result, isEnding { return .success(nil) }
    return result
  }

  /// Runs `operation`, with a time limit once the round is ending: for a job that can be handed back.
  ///
  /// ```swift
  /// while let job = try await round.untilEnding({ try await queue.next() }) {
  ///   let isDone = try await round.finish(within: .seconds(3), job.run)
  ///   if !isDone { try await queue.handBack(job) }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - limit: How long the operation may go on, on the lifecycle's clock, from the moment at which the round is
  ///     ending. Then it is cancelled and waited for. Keep the limit shorter than the time for draining. A stop
  ///     shortens that: to less than three seconds where a stop has the usual ten, as in a container.
  ///   - operation: The work, which runs in its own task.
  /// - Returns: Whether the operation returned; false when it was cancelled and threw.
  /// - Throws: The error that the operation throws, unless it was cancelled.
  nonisolated(nonsending) public func finish(
    within limit: Duration, _ operation: @escaping @Sendable () async throws -> Void
  ) async throws -> Bool {
    try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask {
        try await operation()
        return true
      }
      group.addTask {
        try? await self.waitUntilEnding()
        try? await self.sleep(for: limit)
        return false
      }
      let isDone: Bool
      do { isDone = try await group.next() ?? false } catch {
        // Cancelled with its caller, in a stop that hurries.
        if Task.isCancelled { return false }
        throw error
      }
      group.cancelAll()
      if isDone { return true }
      do { return try await group.next() ?? false } catch { return false }
    }
  }

  private func sleep(for duration: Duration) async throws {
    if let clock {
      try await clock.sleep(for: duration)
    } else {
      try await Task.sleep(for: duration)
    }
  }

  /// Runs `operation`, and calls `handler` once the round is ending: at once if it is ending already.
  ///
  /// - Parameters:
  ///   - operation: The work. It goes on when the handler has been called.
  ///   - handler: Called at most once, on any thread, with no lock held. It must not block. It may close a listener,
  ///     for example.
  /// - Returns: The operation's result; its error is thrown.
  nonisolated(nonsending) public func withEndingHandler<T>(
    _ operation: nonisolated(nonsending) () async throws -> T,
    onEnding handler: @escaping @Sendable () -> Void
  ) async rethrows -> T {
    let id = add(handler)
    defer { if let id { removeHandler(id) } }
    return try await operation()
  }

  @inline(never) func removeHandler(_ id: Int) {
    state.withLock { _ = $0.handlers.removeValue(forKey: id) }
  }

  /// Adds a handler. Returns `nil` when the round is ending, after it has called the handler.
  @inline(never) func add(_ handler: @escaping @Sendable () -> Void) -> Int? {
    let id: Int? = state.withLock { state in
      if state.isEnding { return nil }
      state.lastHandler += 1
      state.handlers[state.lastHandler] = handler
      return state.lastHandler
    }
    if id == nil { handler() }
    return id
  }
}
