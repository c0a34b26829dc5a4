// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The subject's clock: `CLOCK_MONOTONIC`, as systemd's own timers use; in a mock, a virtual clock that a
/// test advances.
///
/// Sleep on it rather than with `Task.sleep`: its timers do not depend on Dispatch, they do not count the
/// time that the machine sleeps, and a test need not wait for them.
///
/// ```swift
/// for try await _ in lifecycle.ticks(every: .seconds(1)) { … }
/// try await lifecycle.clock.sleep(for: .milliseconds(250))
/// ```
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

  let keeper: any TimeKeeper

  public var now: Instant { Instant(keeper.now) }
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
        if sleeper.wait(continuation) { keeper.add(sleeper, until: deadline.time) }
      }
    } onCancel: {
      if sleeper.end(throwing: CancellationError()) { keeper.remove(sleeper) }
    }
  }
}

/// Whoever knows what time it is, and wakes those who sleep: the core of a subject.
protocol TimeKeeper: AnyObject, Sendable {
  var now: MonotonicTime { get }
  /// Ends the sleep at its deadline; at once, by an error, when nothing more happens.
  func add(_ sleeper: Sleeper, until deadline: MonotonicTime)
  /// The sleep has ended otherwise.
  func remove(_ sleeper: Sleeper)
}
