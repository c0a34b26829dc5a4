import CLinux
import Synchronization

/// A file descriptor, and the epoll(7) events that are waited for, or have come.
struct PolledDescriptor: Sendable {
  let number: Int32
  var events = CLINUX_EPOLLIN
}

/// What the listening thread waits on: an epoll set with an eventfd to wake it and a timerfd for the
/// next deadline.
///
/// `wake`, `arm`, `add` and `remove` may be called from any thread; `wait` by the listening thread only.
final class EventPoll: Sendable {
  private let epoll: Int32
  private let wakeUp: Int32
  private let timer: Int32
  private struct Alarm {
    /// When `wait` should return; `.distantFuture`: not because of the time.
    var wanted = MonotonicTime.distantFuture
    /// What the timerfd is set to; the distant future: disarmed. While somebody waits it may be earlier than what
    /// is wanted, never later.
    var set = MonotonicTime.distantFuture
    /// The listening thread is in `wait`: a change of what is wanted must reach the timerfd now. Otherwise that is
    /// done before the next wait, and a delivery that is over by then costs nothing.
    var isWaiting = false
  }
  private let alarm = Mutex(Alarm())

  struct Ready {
    var timerExpired = false
    var descriptors: [PolledDescriptor] = []
  }

  /// Why one of the three descriptors could not be had. A subject does not start then; without sources,
  /// `wait` looks at the clock a hundred times a second instead, and nothing is lost.
  let failure: LifecycleError?

  init() {
    epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    wakeUp = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    timer = timerfd_create(CLOCK_MONOTONIC, Int32(TFD_CLOEXEC | TFD_NONBLOCK))
    var failed: LifecycleError?
    if epoll < 0 || wakeUp < 0 || timer < 0 {
      failed = .system("create the descriptors of the event thread", errno: clinux_errno())
    } else {
      for descriptor in [wakeUp, timer]
      where !Self.add(PolledDescriptor(number: descriptor), to: epoll) {
        failed = .system("watch the descriptors of the event thread", errno: clinux_errno())
      }
    }
    failure = failed
  }

  deinit {
    for descriptor in [epoll, wakeUp, timer] where descriptor >= 0 { close(descriptor) }
  }

  private static func add(_ descriptor: PolledDescriptor, to epoll: Int32) -> Bool {
    var event = epoll_event()
    event.events = descriptor.events
    event.data.fd = descriptor.number
    return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor.number, &event) == 0
  }

  func add(_ descriptor: PolledDescriptor) throws(LifecycleError) {
    guard Self.add(descriptor, to: epoll) else {
      throw .system("watch file descriptor \(descriptor.number)", errno: clinux_errno())
    }
  }

  func remove(_ descriptor: Int32) {
    var event = epoll_event()
    epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, &event)
  }

  func wake() {
    var one: UInt64 = 1
    _ = write(wakeUp, &one, 8)  // EAGAIN means that a wake-up is pending already
  }

  /// Sees to it that `wait` returns at `deadline`. Later deadlines than the one set cost nothing: the
  /// timer is set again when it fires early. `nil` disarms it, so that an idle daemon is never woken.
  func arm(at deadline: MonotonicTime?) {
    alarm.withLock { alarm in
      alarm.wanted = deadline ?? .distantFuture
      if alarm.isWaiting { settle(&alarm) }
    }
  }

  private func settle(_ alarm: inout Alarm) {
    let isIdle = alarm.wanted == .distantFuture
    guard alarm.wanted < alarm.set || isIdle && alarm.set != .distantFuture else { return }
    alarm.set = alarm.wanted
    setTimer(isIdle ? nil : alarm.wanted)
  }

  /// Whether the timer will wake the listening thread.
  var isArmed: Bool { alarm.withLock { $0.wanted != .distantFuture } }

  private func setTimer(_ deadline: MonotonicTime?) {
    var spec = itimerspec()  // all zero: disarmed
    if let deadline {
      let nanoseconds = max(deadline.nanoseconds, 1)
      spec.it_value.tv_sec = time_t(nanoseconds / 1_000_000_000)
      spec.it_value.tv_nsec = Int(nanoseconds % 1_000_000_000)
    }
    timerfd_settime(timer, CLINUX_TFD_TIMER_ABSTIME, &spec, nil)
  }

  /// Waits for a descriptor, the timer, a wake-up or the time-out (milliseconds, -1: none). Both of our
  /// own descriptors are drained here; the others are the caller's to read.
  func wait(milliseconds: Int32) -> Ready {
    var ready = Ready()
    guard failure == nil else {
      poll(nil, 0, milliseconds < 0 ? 10 : min(milliseconds, 10))
      ready.timerExpired = true
      return ready
    }
    alarm.withLock { alarm in
      alarm.isWaiting = true
      settle(&alarm)
    }
    withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: 16) { events in
      let count = epoll_wait(epoll, events.baseAddress!, Int32(events.count), milliseconds)
      alarm.withLock { $0.isWaiting = false }
      // The time-out, or EINTR: a signal handler ran on this thread.
      guard count > 0 else { return }
      for index in 0..<Int(count) {
        let descriptor = events[index].data.fd
        switch descriptor {
        case wakeUp: drain(wakeUp)
        case timer:
          alarm.withLock { alarm in
            drain(timer)
            alarm.set = .distantFuture
          }
          ready.timerExpired = true
        default:
          ready.descriptors.append(
            PolledDescriptor(number: descriptor, events: events[index].events))
        }
      }
    }
    return ready
  }

  private func drain(_ descriptor: Int32) {
    var value: UInt64 = 0
    _ = read(descriptor, &value, 8)
  }
}
