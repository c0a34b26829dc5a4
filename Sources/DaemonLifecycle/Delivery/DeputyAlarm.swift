import CLinux

/// How the deputy waits: until it is rung for, or until a time that the leader has set. A timerfd, since setting
/// one takes a fraction of what waking a thread takes.
///
/// `ring`, `set` and `clear` are called under the executor's lock, so that none undoes another; `wait` by the deputy.
final class DeputyAlarm: Sendable {
  private let timer = timerfd_create(CLOCK_MONOTONIC, Int32(TFD_CLOEXEC | TFD_NONBLOCK))

  deinit { if isUsable { close(timer) } }

  /// Without a descriptor there is no deputy.
  var isUsable: Bool { timer >= 0 }

  func ring() { set(after: .nanoseconds(1)) }
  func set(after duration: Duration) { set(nanoseconds: Int(duration.saturatedNanoseconds)) }
  func clear() { set(nanoseconds: 0) }

  private func set(nanoseconds: Int) {
    var spec = itimerspec()
    spec.it_value.tv_sec = nanoseconds / 1_000_000_000
    spec.it_value.tv_nsec = nanoseconds % 1_000_000_000
    timerfd_settime(timer, 0, &spec, nil)
  }

  /// False when the time-out has come first; true may also mean nothing.
  func wait(seconds: Int32) -> Bool {
    var request = pollfd(fd: timer, events: Int16(POLLIN), revents: 0)
    if poll(&request, 1, seconds * 1000) == 0 { return false }
    var expirations: UInt64 = 0
    _ = read(timer, &expirations, 8)
    return true
  }
}
