// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The source of watchdog ticks, every three eighths of systemd's watchdog period, so that one failed check has no
/// consequence. It distinguishes a stall from outside from a busy or stuck daemon.
///
/// No clock shows a process that it was frozen (`systemctl freeze`, SIGSTOP, a suspend to idle); only a late timer
/// does. The stall is that lateness minus the time for which the listening thread ran or waited for a processor. See
/// proc(5) on `schedstat` and sd_watchdog_enabled(3).
final class WatchdogSource: LifecyclePart {
  private struct State {
    /// The time of the next tick; `nil` while it is closed.
    var expected: MonotonicTime?
    /// `busyTime` when the listening thread began to listen, or at the last tick; `nil` if unknown.
    var baseline: Int64?
  }

  /// The shortest interval; a shorter one is useless and keeps a processor busy.
  static let shortestInterval = Duration.milliseconds(10)

  private let interval: Duration
  /// The shortest lateness that counts as a stall.
  private let threshold: Duration
  private let state = Mutex(State())

  init(period: Duration) {
    interval = max(period * 3 / 8, Self.shortestInterval)
    threshold = period / 8
  }

  @discardableResult func open() -> MonotonicTime? {
    state.withLock { state in
      state.expected = .now().advanced(by: interval)
      return state.expected
    }
  }

  /// Notes that another thread listens from now on, which has its own counters.
  func listenerChanged() {
    state.withLock { $0.baseline = Self.busyTime }
  }

  /// It works also after the descriptors were lost: a ping after STOPPING=1 has started systemd's timer again.
  @discardableResult func wake(_ take: (SourceInput) -> Void) -> MonotonicTime? {
    let (stall, next): (Duration?, MonotonicTime?) = state.withLock { state in
      let now = MonotonicTime.now()
      guard let expected = state.expected, expected <= now else { return (nil, state.expected) }
      let busyTime = Self.busyTime
      let stall = Self.stall(
        late: expected.duration(to: now), since: state.baseline, busyTime, threshold)
      state.baseline = busyTime
      state.expected = now.advanced(by: interval)
      return (stall, state.expected)
    }
    if let stall { take(.watchdogTick(stall: stall)) }
    return next
  }

  /// How long the process was stalled from outside while the timer was late; zero if unknown, or below the threshold.
  static func stall(
    late: Duration, since baseline: Int64?, _ busyTime: Int64?, _ threshold: Duration
  ) -> Duration {
    guard let busyTime, let baseline else { return .zero }
    let stall = late - .nanoseconds(max(0, busyTime &- baseline))
    return stall < threshold ? .zero : stall
  }

  @discardableResult func close() -> [SourceInput] {
    state.withLock { $0.expected = nil }
    return []
  }

  // MARK: The thread's counters

  /// How long the calling thread has run or waited for a processor, in nanoseconds; `nil` where the kernel does not count,
  /// or /proc can't be read.
  private static var busyTime: Int64? {
    (try? readProcFile("/proc/thread-self/schedstat")).flatMap { busyTime(in: $0) }
  }

  /// - Parameter text: `12345 678 9`: time run, time waited, number of turns.
  static func busyTime(in text: [UInt8]) -> Int64? {
    let numbers = String(decoding: text, as: UTF8.self).split(whereSeparator: \.isWhitespace)
      .prefix(2).compactMap { Int64($0) }
    guard numbers.count == 2, numbers.allSatisfy({ $0 >= 0 }) else { return nil }
    return numbers[0] &+ numbers[1]
  }
}
