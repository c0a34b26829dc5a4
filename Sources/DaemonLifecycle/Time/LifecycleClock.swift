// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The clock of a subject: `CLOCK_MONOTONIC`, as in systemd's own timers; in a mock, a virtual clock that a test
/// advances.
///
/// Prefer it to `Task.sleep`: its timers do not depend on Dispatch, they do not count the time that the machine sleeps,
/// and a test does not have to wait for them.
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

    /// A point in time later than all others: the deadline where there is none.
    package static let distantFuture = Instant(.distantFuture)

    /// Returns the instant after a duration. The result saturates at the distant future.
    public func advanced(by duration: Duration) -> Instant { Instant(time.advanced(by: duration)) }
    /// Returns the duration from this instant to another one; negative if that is earlier.
    public func duration(to other: Instant) -> Duration { time.duration(to: other.time) }
    /// Whether the first instant is earlier than the second.
    public static func < (a: Instant, b: Instant) -> Bool { a.time < b.time }
    /// The seconds since the clock's zero, which is the start of the machine or of the mock.
    public var description: String {
      MonotonicTime(nanoseconds: 0).duration(to: time).description
    }
  }

  let keeper: any TimeKeeper

  /// The current time of the clock.
  public var now: Instant { Instant(keeper.now) }
  /// The resolution of the clock: one nanosecond.
  public var minimumResolution: Duration { .nanoseconds(1) }

  /// Sleeps until a deadline; returns at once when it has passed.
  ///
  /// - Parameters:
  ///   - deadline: The time to wait for.
  ///   - tolerance: Not used: the timers are exact.
  /// - Throws: `CancellationError`, at once, when the task is cancelled or the subject is deallocated; after 100 ms
  ///   when the subject was deallocated before, so that a loop that ignores the error does not spin.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    try Task.checkCancellation()
    if deadline <= now { return }
    try await sleep(Sleeper(), until: deadline)
  }

  /// Sleeps until a deadline, or until another party ends the sleep.
  func sleep(_ sleeper: Sleeper, until deadline: Instant) async throws {
    try await sleeper.wait {
      keeper.add(sleeper, until: deadline.time)
    } onCancel: {
      if sleeper.end(throwing: CancellationError()) { keeper.remove(sleeper) }
    }
  }
}

/// The owner of a clock, which has the time and wakes sleepers: the core of a subject.
protocol TimeKeeper: AnyObject, Sendable {
  var now: MonotonicTime { get }
  /// A number from 0 up to 1, at random; in a mock by its seed.
  var randomShare: Double { get }
  /// Adds a sleep, which ends at its deadline; when the subject has ended, soon with an error.
  func add(_ sleeper: Sleeper, until deadline: MonotonicTime)
  /// Removes a sleep that has ended before its deadline.
  func remove(_ sleeper: Sleeper)
}
