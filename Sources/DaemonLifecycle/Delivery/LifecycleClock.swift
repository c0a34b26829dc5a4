import CLinux
import Synchronization

/// The subject's clock: `CLOCK_MONOTONIC`, as systemd's own timers use; in a mock, a virtual clock that a
/// test advances.
///
/// Sleep on it rather than with `Task.sleep`: its timers do not depend on Dispatch, they do not count the
/// time that the machine sleeps, and a test need not wait for them.
///
///     for try await _ in lifecycle.ticks(every: .seconds(1)) { … }
///     try await lifecycle.clock.sleep(for: .milliseconds(250))
public struct LifecycleClock: Clock {
  /// A point in time of one subject's clock.
  public struct Instant: InstantProtocol, CustomStringConvertible {
    let time: MonotonicTime
    init(_ time: MonotonicTime) { self.time = time }

    /// Later than anything: the deadline where there is none.
    public static let distantFuture = Instant(.distantFuture)

    public func advanced(by duration: Duration) -> Instant { Instant(time.advanced(by: duration)) }
    public func duration(to other: Instant) -> Duration { time.duration(to: other.time) }
    public static func < (a: Instant, b: Instant) -> Bool { a.time < b.time }
    /// Seconds since the clock's zero: the machine's start, or the mock's.
    public var description: String {
      MonotonicTime(nanoseconds: 0).duration(to: time).description
    }
  }

  let core: LifecycleCore

  public var now: Instant { Instant(core.now) }
  public var minimumResolution: Duration { .nanoseconds(1) }

  /// Returns at once when the deadline has passed. Throws `CancellationError`, at once, when the task is
  /// cancelled or the subject goes away.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    try Task.checkCancellation()
    if deadline <= now { return }
    try await sleep(Sleeper(), until: deadline)
  }

  /// A sleep that others may end too.
  func sleep(_ sleeper: Sleeper, until deadline: Instant) async throws {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        if sleeper.wait(continuation) { core.add(sleeper, until: deadline.time) }
      }
    } onCancel: {
      if sleeper.end(throwing: CancellationError()) { core.remove(sleeper) }
    }
  }
}

/// One sleep on the subject's clock.
final class Sleeper: Sendable {
  private enum State {
    /// Becomes `waiting`, or `ended` when it is cancelled before.
    case new
    /// Becomes `ended`.
    case waiting(CheckedContinuation<Void, any Error>)
    case ended((any Error)?)
  }
  private let state = Mutex<State>(.new)

  /// False when it ended before it began.
  func wait(_ continuation: CheckedContinuation<Void, any Error>) -> Bool {
    let ended: (any Error)?? = state.withLock { state in
      if case .ended(let error) = state { return .some(error) }
      state = .waiting(continuation)
      return nil
    }
    guard let ended else { return true }
    if let ended { continuation.resume(throwing: ended) } else { continuation.resume() }
    return false
  }

  var hasEnded: Bool { state.withLock { if case .ended = $0 { true } else { false } } }

  /// True when it was waiting.
  @discardableResult func end(throwing error: (any Error)? = nil) -> Bool {
    let continuation: CheckedContinuation<Void, any Error>? = state.withLock { state in
      switch state {
      case .new:
        state = .ended(error)
        return nil
      case .waiting(let continuation):
        state = .ended(error)
        return continuation
      case .ended: return nil
      }
    }
    guard let continuation else { return false }
    if let error { continuation.resume(throwing: error) } else { continuation.resume() }
    return true
  }
}

/// What the clock has to wake, soonest first; those of one instant in the order added.
struct TimerQueue {
  private var timers: [(deadline: MonotonicTime, sleeper: Sleeper)] = []

  var first: MonotonicTime? { timers.first?.deadline }
  var count: Int { timers.count }

  mutating func add(_ sleeper: Sleeper, at deadline: MonotonicTime) {
    var low = 0
    var high = timers.count
    while low < high {
      let middle = (low + high) / 2
      if timers[middle].deadline <= deadline { low = middle + 1 } else { high = middle }
    }
    timers.insert((deadline, sleeper), at: low)
  }

  mutating func remove(_ sleeper: Sleeper) { timers.removeAll { $0.sleeper === sleeper } }

  mutating func removeExpired(at now: MonotonicTime) -> [Sleeper] {
    let expired = timers.prefix { $0.deadline <= now }
    timers.removeFirst(expired.count)
    return expired.map(\.sleeper)
  }
}
