// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// One stay in the foreground. It is *ending* once a pause, a suspend or a stop has begun; that cancels nothing.
///
/// ```swift
/// try await lifecycle.foreground(draining: .seconds(20)) { round in
///   try await withThrowingDiscardingTaskGroup { connections in
///     for try await client in clients.untilEnding(of: round) {  // takes nobody new
///       connections.addTask { await serve(client, round) }
///     }
///   }  // waits for who is being served
/// }
/// ```
///
/// A round that is ending stays so: after a resume there is a new one. Safe to use from any task and thread.
public final class ForegroundRound: Sendable {
  private struct State {
    var isEnding = false
    /// Called once, when it begins to end; empty from then on.
    var handlers: [UInt64: @Sendable () -> Void] = [:]
    var lastHandler: UInt64 = 0
  }
  private let state = Mutex(State())

  /// A round made by hand, to test what takes one.
  public init() {}

  /// Ends a round that was made by hand; idempotent.
  public func end() {
    let handlers = state.withLock { state in
      state.isEnding = true
      defer { state.handlers = [:] }
      return state.handlers.sorted { $0.key < $1.key }.map(\.value)
    }
    for handler in handlers { handler() }
  }

  /// Whether a pause, a suspend or a stop has begun: answer with `Connection: close`, take no further job.
  public var isEnding: Bool { state.withLock(\.isEnding) }

  // MARK: Waiting

  /// Returns when the round is ending.
  ///
  /// - Throws: `CancellationError` when the calling task is cancelled before.
  nonisolated(nonsending) public func untilEnding() async throws {
    let sleeper = Sleeper()
    try await withEndingHandler {
      try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { _ = sleeper.wait($0) }
      } onCancel: {
        sleeper.end(throwing: CancellationError())
      }
    } onEnding: {
      sleeper.end()
    }
  }

  /// Waits for `operation`, which is cancelled once the round is ending: for whatever waits for the next thing to do.
  ///
  /// ```swift
  /// while let job = try await round.untilEnding({ try await queue.next() }) { await work(on: job) }
  /// ```
  ///
  /// - Parameter operation: The wait, in a task of its own. Not begun when the round is ending already.
  /// - Returns: What the operation returned, also when that was in the moment of the end: nothing that was taken is
  ///   lost. `nil` when it was cancelled, or not begun.
  /// - Throws: What the operation throws, except the `CancellationError` of the end.
  nonisolated(nonsending) public func untilEnding<T: Sendable>(
    _ operation: @escaping @Sendable () async throws -> T?
  ) async throws -> T? {
    if isEnding { return nil }
    let task = Task(operation: operation)
    let result = await withEndingHandler {
      await withTaskCancellationHandler {
        await task.result
      } onCancel: {
        task.cancel()
      }
    } onEnding: {
      task.cancel()
    }
    do { return try result.get() } catch is CancellationError where isEnding { return nil }
  }

  /// Runs `operation`, and `handler` once the round is ending: at once if it is already.
  ///
  /// - Parameters:
  ///   - operation: Goes on when the handler has been called.
  ///   - handler: Called at most once, on any thread, outside of all locks; it must not wait. Closing a listener is
  ///     for here.
  /// - Returns: What the operation returns.
  /// - Throws: What the operation throws.
  nonisolated(nonsending) public func withEndingHandler<T>(
    _ operation: nonisolated(nonsending) () async throws -> T,
    onEnding handler: @escaping @Sendable () -> Void
  ) async rethrows -> T {
    let id = add(handler)
    defer { if let id { state.withLock { _ = $0.handlers.removeValue(forKey: id) } } }
    return try await operation()
  }

  /// `nil` when it is ending, and the handler has been called.
  private func add(_ handler: @escaping @Sendable () -> Void) -> UInt64? {
    let id: UInt64? = state.withLock { state in
      if state.isEnding { return nil }
      state.lastHandler += 1
      state.handlers[state.lastHandler] = handler
      return state.lastHandler
    }
    if id == nil { handler() }
    return id
  }
}

extension AsyncSequence where Self: Sendable, Element: Sendable {
  /// The elements until the round is ending: then the wait for the next one is cancelled, and the loop ends.
  ///
  /// An element that has come in that moment is handed out; what is buffered in the sequence is not taken. Many
  /// sequences are dead once a wait for them was cancelled, `AsyncStream` among them: make them in the round.
  ///
  /// - Parameter round: The stay in the foreground that the loop is for.
  /// - Returns: A sequence that throws what this one throws.
  public func untilEnding(of round: ForegroundRound) -> RoundElements<Self> {
    RoundElements(base: self, round: round)
  }
}

/// The elements of a sequence until a round is ending: what `untilEnding(of:)` returns.
public struct RoundElements<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Base.Element: Sendable {
  let base: Base
  let round: ForegroundRound

  public func makeAsyncIterator() -> Iterator {
    Iterator(source: Source(base.makeAsyncIterator()), round: round)
  }

  /// Waits for the next element in a task of its own, which can be cancelled alone.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let source: Source
    fileprivate let round: ForegroundRound

    /// The next element; `nil` at the end of the sequence, and when the round is ending.
    public mutating func next() async throws -> Base.Element? { try await next(isolation: nil) }

    /// The next element; `nil` at the end of the sequence, and when the round is ending.
    public mutating func next(
      isolation _: isolated (any Actor)?
    ) async throws -> Base.Element? {
      let source = source
      return try await round.untilEnding { try await source.iterator.next() }
    }
  }

  /// Unchecked: the iterator is used by one task after another, since each is waited for before the next begins.
  fileprivate final class Source: @unchecked Sendable {
    var iterator: Base.AsyncIterator
    init(_ iterator: Base.AsyncIterator) { self.iterator = iterator }
  }
}
