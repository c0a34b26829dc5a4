import CLinux
import DaemonSystemd
import Synchronization

/// A file descriptor, and the epoll(7) events that are waited for, or have come.
struct PolledDescriptor: Sendable {
  let number: Int32
  var events = CLINUX_EPOLLIN
}

/// What the listening thread waits on: an epoll set with a waker and a timerfd for the next deadline.
///
/// Other code of the process may close any of these descriptors, and be given their numbers. `wait` says so as soon as
/// it is known (`Ready.isLost`), and `repair` makes new ones.
///
/// `wake`, `arm`, `add` and `remove` may be called from any thread; `wait` and `repair` by the listening thread only.
final class EventPoll: Sendable {
  /// Written by `init` and by `repair`; -1: there is none.
  private let epoll = Atomic<Int32>(-1)
  let waker = Waker()
  /// A pressure file is in the set: to ask whether such a set is ready takes the file's event.
  private let holdsPressure = Atomic<Bool>(false)
  private struct Alarm {
    /// The timerfd; -1: there is none.
    var timer: Int32 = -1
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
    /// A descriptor may not be ours any more: time for `repair`.
    var isLost = false
  }

  private let incomplete = Mutex<LifecycleError?>(nil)

  /// Why one of the descriptors could not be had. A subject does not start then. While it is set, `wait` looks at the
  /// clock a hundred times a second instead, and nothing is lost.
  var failure: LifecycleError? { incomplete.withLock { $0 } }

  init() { completeDescriptors() }

  deinit {
    let (keepsTimer, set) = (holdsTimer, epoll.load(ordering: .relaxed))
    let timer = alarm.withLock { $0.timer }
    // A number that is not ours any more is not ours to close.
    let closesSet = holds(waker.descriptor) || keepsTimer
    if keepsTimer { close(timer) }
    if closesSet { close(set) }
  }

  // MARK: Descriptors

  /// Makes those that are missing.
  private func completeDescriptors() {
    if waker.descriptor < 0 { _ = waker.reopen() }
    if epoll.load(ordering: .acquiring) < 0 {
      epoll.store(epoll_create1(Int32(EPOLL_CLOEXEC)), ordering: .releasing)
    }
    let timer = alarm.withLock { alarm in
      if alarm.timer < 0 {
        alarm.timer = clinux_make_timer()
        alarm.set = .distantFuture
      }
      return alarm.timer
    }
    var failed: LifecycleError?
    if epoll.load(ordering: .acquiring) < 0 || waker.descriptor < 0 || timer < 0 {
      failed = .system("create the descriptors of the event thread", errno: clinux_errno())
    } else {
      for descriptor in [waker.descriptor, timer]
      where !holds(descriptor) && !control(EPOLL_CTL_ADD, PolledDescriptor(number: descriptor)) {
        failed = .system("watch the descriptors of the event thread", errno: clinux_errno())
      }
    }
    incomplete.withLock { $0 = failed }
  }

  @discardableResult
  private func control(_ what: Int32, _ descriptor: PolledDescriptor) -> Bool {
    var event = epoll_event()
    event.events = descriptor.events
    event.data.fd = descriptor.number
    return epoll_ctl(epoll.load(ordering: .acquiring), what, descriptor.number, &event) == 0
  }

  /// Whether the number still names the descriptor that was added. The set goes by the open file and not by the number
  /// alone, so a stranger's descriptor under one of our numbers is not in it, nor ours in a stranger's set.
  func holds(_ number: Int32, events: UInt32 = CLINUX_EPOLLIN) -> Bool {
    number >= 0 && control(EPOLL_CTL_MOD, PolledDescriptor(number: number, events: events))
  }

  /// All of its descriptors are its own still.
  var isIntact: Bool { holdsTimer && holds(waker.descriptor) && waker.isIntact }

  private var holdsTimer: Bool { holds(alarm.withLock { $0.timer }) }

  func add(_ descriptor: PolledDescriptor) throws(LifecycleError) {
    if descriptor.events & UInt32(POLLPRI) != 0 {
      holdsPressure.store(true, ordering: .releasing)
      // A wait that has begun with poll(2) would take the event.
      wake()
    }
    guard control(EPOLL_CTL_ADD, descriptor) else {
      throw .system("watch file descriptor \(descriptor.number)", errno: clinux_errno())
    }
  }

  func remove(_ descriptor: Int32) { control(EPOLL_CTL_DEL, PolledDescriptor(number: descriptor)) }

  /// Makes new descriptors for those that are not ours any more, which are left to whoever has their numbers now.
  /// False when nothing was missing.
  ///
  /// What was added must be looked at with `holds`, and added again where that says no.
  func repair() -> Bool {
    waker.forgetLoss()
    let (keepsTimer, keepsWaker) = (holdsTimer, waker.isIntact)
    let keepsSet = keepsTimer || holds(waker.descriptor)
    if keepsSet, keepsTimer, keepsWaker, failure == nil { return false }
    if !keepsSet { epoll.store(-1, ordering: .releasing) }
    if !keepsTimer { alarm.withLock { $0.timer = -1 } }
    if !keepsWaker { _ = waker.reopen() }
    completeDescriptors()
    return true
  }

  // MARK: Waking

  func wake() { waker.wake() }

  /// Sees to it that `wait` returns at `deadline`. Later deadlines than the one set cost nothing: the
  /// timer is set again when it fires early. `nil` disarms it, so that an idle daemon is never woken.
  func arm(at deadline: MonotonicTime?) {
    let isSet = alarm.withLock { alarm in
      alarm.wanted = deadline ?? .distantFuture
      return !alarm.isWaiting || settle(&alarm)
    }
    if !isSet { waker.reportLoss() }
  }

  /// False when the timer is not ours any more.
  private func settle(_ alarm: inout Alarm) -> Bool {
    let isIdle = alarm.wanted == .distantFuture
    guard alarm.wanted < alarm.set || isIdle && alarm.set != .distantFuture else { return true }
    alarm.set = alarm.wanted
    return Self.set(alarm.timer, to: isIdle ? nil : alarm.wanted)
  }

  /// Whether the timer will wake the listening thread.
  var isArmed: Bool { alarm.withLock { $0.wanted != .distantFuture } }

  /// A timer that has gone off is not readable after it.
  private static func set(_ timer: Int32, to deadline: MonotonicTime?) -> Bool {
    clinux_set_timer(timer, deadline.map { max($0.nanoseconds, 1) } ?? 0, true)
  }

  // MARK: Waiting

  /// Waits for a descriptor, the timer, a wake-up or the time-out (milliseconds, -1: none). Both of our
  /// own descriptors are drained here; the others are the caller's to read. A wake-up is among the descriptors.
  func wait(milliseconds: Int32) -> Ready {
    waker.listen()
    guard failure == nil else { return waitWithoutDescriptors(milliseconds) }
    let isSet = alarm.withLock { alarm in
      alarm.isWaiting = true
      return settle(&alarm)
    }
    // A loss that is reported from here on comes with a signal, which ends the wait.
    let timeout = isSet && !waker.isLost ? milliseconds : 0
    var ready = Ready()
    withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: 16) { events in
      let isDirect = holdsPressure.load(ordering: .acquiring)
      var count = takeEvents(into: events, within: isDirect ? timeout : 0)
      if !isDirect, count == 0, timeout != 0 {
        ready.isLost = !waitForEvents(timeout)
        count = takeEvents(into: events)
      }
      alarm.withLock { $0.isWaiting = false }
      if count < 0 || !isSet || waker.isLost { ready.isLost = true }
      for event in events.prefix(max(0, count)) { take(event, &ready) }
    }
    return ready
  }

  /// Negative when the set is not ours any more.
  private func takeEvents(
    into events: UnsafeMutableBufferPointer<epoll_event>, within milliseconds: Int32 = 0
  ) -> Int {
    let count = epoll_wait(
      epoll.load(ordering: .relaxed), events.baseAddress!, Int32(events.count), milliseconds)
    // A signal handler may end it early.
    return count < 0 && clinux_errno() == EINTR ? 0 : Int(count)
  }

  /// Waits until the set has events; false when descriptors of the process were closed meanwhile.
  ///
  /// poll(2) holds the files that it waits for until it returns, closed or not; epoll_wait(2) does not. So when other
  /// code closes every descriptor of the process, the waker's end that is waited for hangs up and ends the wait. Not with
  /// a pressure file in the set, whose event poll(2) would take: then such a loss is seen at the next signal.
  private func waitForEvents(_ milliseconds: Int32) -> Bool {
    withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 2) { files in
      files[0] = pollfd(fd: epoll.load(ordering: .relaxed), events: Int16(POLLIN), revents: 0)
      files[1] = pollfd(fd: waker.descriptor, events: 0, revents: 0)
      // A signal handler may end it early, and a time-out leaves both as they are.
      guard poll(files.baseAddress, 2, milliseconds) > 0 else { return true }
      return files[0].revents & ~Int16(POLLIN) == 0 && files[1].revents == 0
    }
  }

  private func take(_ event: epoll_event, _ ready: inout Ready) {
    let descriptor = PolledDescriptor(number: event.data.fd, events: event.events)
    if descriptor.number == waker.descriptor {
      // Its other end is closed: the waker is gone.
      if event.events != CLINUX_EPOLLIN { ready.isLost = true }
      waker.drain()
    } else if alarm.withLock({ takeTimer(descriptor.number, &$0) }) {
      ready.timerExpired = true
      return
    }
    ready.descriptors.append(descriptor)
  }

  /// Set anew rather than read: should the number be another's by now, that one's bytes are not ours to take.
  private func takeTimer(_ number: Int32, _ alarm: inout Alarm) -> Bool {
    guard number == alarm.timer else { return false }
    alarm.set = .distantFuture
    _ = Self.set(alarm.timer, to: nil)
    return true
  }

  /// As if all of them were ready; and it is time to try to have them again.
  private func waitWithoutDescriptors(_ milliseconds: Int32) -> Ready {
    poll(nil, 0, milliseconds < 0 ? 10 : min(milliseconds, 10))
    return Ready(
      timerExpired: true, descriptors: [PolledDescriptor(number: waker.descriptor)], isLost: true)
  }
}
