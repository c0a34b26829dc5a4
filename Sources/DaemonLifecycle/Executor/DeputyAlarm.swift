import CLinux
import DaemonSystemd
import Synchronization

/// How the deputy waits: until it is rung for, or until a time that the leader has set. A timerfd, since setting
/// one takes a fraction of what waking a thread takes.
///
/// `ring`, `set`, `clear` and `reopen` are called under the executor's lock, so that none undoes another; `wait` by the
/// deputy. Other code of the process may close the timer: `ring` and `set` are false then, and nobody would be woken.
final class DeputyAlarm: Sendable {
  private let timer: Atomic<Int32>

  init() { timer = Atomic(clinux_make_timer()) }

  deinit { clinux_close_timer(number) }

  private var number: Int32 { timer.load(ordering: .acquiring) }

  /// Without a descriptor there is no deputy.
  var isUsable: Bool { number >= 0 }

  /// A new timer in the place of one that may be another's by now, and is left alone.
  func reopen() { timer.store(clinux_make_timer(), ordering: .releasing) }

  func ring() -> Bool { set(after: .nanoseconds(1)) }
  func set(after duration: Duration) -> Bool {
    clinux_set_timer(number, duration.saturatedNanoseconds, false)
  }
  /// Neither set nor ringing after it. Not by reading, which would take another's bytes should the number be another's.
  @discardableResult func clear() -> Bool { set(after: .zero) }

  /// Returns when it rings, and may return without. False when descriptors of the process were closed.
  ///
  /// The kernel keeps the files that are waited for until the wait is over, closed or not. So the leader's waker lives on
  /// in the leader's epoll set although its number is gone, and tells the leader there that its other end is closed; or
  /// this wait ends.
  func wait(watching waker: Waker) -> Bool {
    // Lost before: its number may be a file's that never hangs up.
    guard waker.isIntact else { return false }
    return withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 2) { requests in
      requests[0] = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
      requests[1] = pollfd(fd: waker.descriptor, events: 0, revents: 0)
      poll(requests.baseAddress, 2, -1)
      return requests[0].revents & ~Int16(POLLIN) == 0 && requests[1].revents == 0
    }
  }
}
