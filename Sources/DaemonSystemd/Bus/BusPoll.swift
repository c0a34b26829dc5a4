import CLinux

/// One descriptor for all that a session waits for: an epoll set of the bus's socket, a timer and a wake-up.
///
/// Used by the thread that has the session's turn, but for `wake`, which any thread may call.
final class BusPoll: Sendable {
  /// Readable when the session has something to do; the same number for the session's whole life.
  let descriptor: Int32
  private let timer: Int32
  /// Freed by the deinit; what is behind it are atomics. No eventfd, since other code of the process may close it,
  /// and a wake-up would go into whatever file has its number then.
  nonisolated(unsafe) private let waker = clinux_waker_make()!
  /// Why one of the descriptors could not be had; the session is then unavailable for ever.
  let failure: BusError?

  init() {
    descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
    timer = clinux_make_timer()
    var complete = clinux_waker_open(waker) == 0 && descriptor >= 0 && timer >= 0
    for own in [timer, clinux_waker_read_end(waker)] where complete {
      complete = Self.control(descriptor, EPOLL_CTL_ADD, own, CLINUX_EPOLLIN)
    }
    failure =
      complete ? nil : .system("create the descriptors of a bus session", errno: clinux_errno())
  }

  deinit {
    for own in [descriptor, timer] where own >= 0 { close(own) }
    clinux_waker_free(waker)
  }

  func wake() { clinux_waker_wake(waker) }

  /// What made the descriptor readable is seen to from here on. Before the work, so that a wake-up that
  /// comes meanwhile is not lost.
  func drain() {
    var value: UInt64 = 0
    clinux_waker_drain(waker)
    _ = read(timer, &value, 8)
  }

  /// Waits for these events of the bus's socket. `before` is the socket watched so far: sd-bus may close
  /// its socket and open another one under the same number, so the kernel is asked, not our memory.
  func watch(_ interest: (descriptor: Int32, events: UInt32), before: Int32?) {
    if let before, before != interest.descriptor { forget(before) }
    if !Self.control(descriptor, EPOLL_CTL_MOD, interest.descriptor, interest.events) {
      _ = Self.control(descriptor, EPOLL_CTL_ADD, interest.descriptor, interest.events)
    }
  }

  func forget(_ socket: Int32) { _ = Self.control(descriptor, EPOLL_CTL_DEL, socket, 0) }

  /// Becomes readable at `deadline`; never when that is `nil`.
  func arm(at deadline: MonotonicTime?) {
    clinux_set_timer(timer, deadline.map { max($0.nanoseconds, 1) } ?? 0, true)
  }

  private static func control(_ set: Int32, _ what: Int32, _ member: Int32, _ events: UInt32)
    -> Bool
  {
    var event = epoll_event()
    event.events = events  // POLLIN and POLLOUT have the same values as EPOLLIN and EPOLLOUT
    event.data.fd = member
    return epoll_ctl(set, what, member, &event) == 0
  }
}
