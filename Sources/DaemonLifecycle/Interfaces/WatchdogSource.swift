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
    /// What the listening thread's counters were when it began to listen, or at the last tick; `nil` where that is not
    /// known.
    var baseline: Schedule?
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
    state.withLock { $0.baseline = .current }
  }

  /// Also after the descriptors were lost: a ping after STOPPING=1 has started systemd's timer again.
  @discardableResult func wake(_ take: (SourceInput) -> Void) -> MonotonicTime? {
    let (stall, next): (Duration?, MonotonicTime?) = state.withLock { state in
      let now = MonotonicTime.now()
      guard let expected = state.expected, expected <= now else { return (nil, state.expected) }
      let schedule = Schedule.current
      let stall = Self.stall(
        late: expected.duration(to: now), since: state.baseline, schedule, threshold)
      state.baseline = schedule
      state.expected = now.advanced(by: interval)
      return (stall, state.expected)
    }
    if let stall { take(.watchdogTick(stall: stall)) }
    return next
  }

  /// How long the process was stalled from outside, of the time for which the timer was late; zero when that
  /// is not known.
  static func stall(
    late: Duration, since baseline: Schedule?, _ schedule: Schedule?, _ threshold: Duration
  ) -> Duration {
    guard let schedule, let baseline else { return .zero }
    let own = schedule.ran - baseline.ran + schedule.waited - baseline.waited
    let stall = late - .nanoseconds(max(0, own))
    return stall < threshold ? .zero : stall
  }

  @discardableResult func close() -> [SourceInput] {
    state.withLock { $0.expected = nil }
    return []
  }
}

/// A thread's counters, in nanoseconds.
struct Schedule: Sendable, Equatable {
  /// How long it has run.
  let ran: Int64
  /// How long it has waited for a processor.
  let waited: Int64
}

extension Schedule {
  /// Those of the calling thread; `nil` where the kernel does not count, or /proc can't be read.
  static var current: Schedule? {
    (try? readProcFile("/proc/thread-self/schedstat")).flatMap { Schedule(parsing: $0) }
  }

  /// `12345 678 9`: time run, time waited, number of turns.
  init?(parsing text: some Sequence<UInt8>) {
    let numbers = String(decoding: Array(text), as: UTF8.self).split(whereSeparator: \.isWhitespace)
      .prefix(2).compactMap { Int64($0) }
    guard numbers.count == 2, numbers.allSatisfy({ $0 >= 0 }) else { return nil }
    self.init(ran: numbers[0], waited: numbers[1])
  }
}
