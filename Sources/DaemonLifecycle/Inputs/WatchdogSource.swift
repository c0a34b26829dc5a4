// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

/// The source of watchdog ticks, every three eighths of systemd's watchdog period, so that one failed check has no
/// consequence. It distinguishes a stall from outside from a busy or stuck daemon.
///
/// No clock shows a process that it was frozen (`systemctl freeze`, SIGSTOP, a suspend to idle); only a late timer
/// does. The stall is that lateness minus the time for which the listening thread ran or waited for a processor. See
/// proc(5) on `schedstat` and sd_watchdog_enabled(3).
final class WatchdogSource: LifecycleSource {
  private struct State {
    /// The time of the next tick; `nil` while it is closed.
    var expected: MonotonicTime?
    var counters = ScheduleFile()
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

  deinit { close() }

  var deadline: MonotonicTime? { state.withLock(\.expected) }

  func open() {
    state.withLock { state in
      // For its descriptor; the listening thread opens its own in its place.
      _ = state.counters.read()
      state.expected = .now().advanced(by: interval)
    }
  }

  /// Notes that another thread listens from now on, which has its own counters.
  func listenerChanged() {
    state.withLock { state in
      // Between `close` and the end of its thread nothing is opened any more.
      if state.expected != nil { state.baseline = state.counters.read() }
    }
  }

  func timePassed() -> [LifecycleMachine.Input] {
    state.withLock { state in
      let now = MonotonicTime.now()
      guard let expected = state.expected, expected <= now else { return [] }
      let schedule = state.counters.read()
      let stall = Self.stall(
        late: expected.duration(to: now), since: state.baseline, schedule, threshold)
      state.baseline = schedule
      state.expected = now.advanced(by: interval)
      return [.watchdogTick(stall: stall)]
    }
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

  @discardableResult func close() -> [LifecycleMachine.Input] {
    state.withLock { state in
      state.expected = nil
      state.counters.close()
    }
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
  /// `12345 678 9`: time run, time waited, number of turns.
  init?(parsing text: some Sequence<UInt8>) {
    let numbers = String(decoding: Array(text), as: UTF8.self).split(whereSeparator: \.isWhitespace)
      .prefix(2).compactMap { Int64($0) }
    guard numbers.count == 2, numbers.allSatisfy({ $0 >= 0 }) else { return nil }
    self.init(ran: numbers[0], waited: numbers[1])
  }
}

/// The counters of the thread that reads them, from a file that stays open: a process without descriptors that is
/// frozen must be able to read them too.
private struct ScheduleFile {
  private var number: Int32 = -1
  /// The thread whose file it is.
  private var thread: Int32 = 0
  /// The file's identity, since other code of the process may close the descriptor and reuse its number.
  private var identity: FileIdentity?

  /// `nil` where the kernel does not count, or /proc can't be read.
  mutating func read() -> Schedule? {
    let thread = clinux_thread_id()
    if thread != self.thread { close() }
    if number < 0 {
      number = clinux_open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)
      self.thread = thread
      identity = FileIdentity(of: number)
    }
    guard number >= 0 else { return nil }
    return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 128) { buffer in
      let count = pread(number, buffer.baseAddress, buffer.count, 0)
      guard count > 0 else { return nil }
      return Schedule(parsing: buffer.prefix(count))
    }
  }

  mutating func close() {
    if number >= 0, FileIdentity(of: number) == identity { CLinux.close(number) }
    number = -1
  }
}
