// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

/// A file descriptor, and the epoll(7) events that are waited for, or have come.
struct PolledDescriptor: Sendable {
  let number: Int32
  var events = CLINUX_EPOLLIN

  /// A pressure file of the kernel's. Asking whether it has an event takes the event, and so does polling a set that it
  /// is in: it is polled directly.
  var isPressure: Bool { events & UInt32(POLLPRI) != 0 }
}

/// What the listening thread waits on: an epoll set with a waker and a timerfd for the next deadline, and the pressure
/// files beside it.
///
/// Other code of the process may close any of these descriptors, and be given their numbers. `wait` says so as soon as
/// it is known (`Ready.isLost`), and `repair` makes new ones.
///
/// `wake`, `arm`, `add` and `remove` may be called from any thread; `wait` and `repair` by the listening thread only.
final class EventPoll: Sendable {
  /// Written by `init` and by `repair`; -1: there is none. Relaxed on the listening thread, which calls `repair`.
  private let epoll = Atomic<Int32>(-1)
  let waker = Waker()
  /// A file beside the set, and what tells it from another one that is given its number.
  private struct PressureFile {
    let descriptor: PolledDescriptor
    let identity: FileIdentity

    var isOurs: Bool { FileIdentity(of: descriptor.number) == identity }
  }
  private let pressureFiles = Mutex<[PressureFile]>([])
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

    var isEmpty: Bool { !timerExpired && descriptors.isEmpty && !isLost }

    /// Nothing, with room for as many descriptors as there were.
    mutating func removeAll() {
      timerExpired = false
      descriptors.removeAll(keepingCapacity: true)
      isLost = false
    }
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
  func holds(_ descriptor: PolledDescriptor) -> Bool {
    guard descriptor.isPressure else { return holds(descriptor.number, descriptor.events) }
    return pressureFiles.withLock { files in
      files.contains { $0.descriptor.number == descriptor.number && $0.isOurs }
    }
  }

  private func holds(_ number: Int32, _ events: UInt32 = CLINUX_EPOLLIN) -> Bool {
    number >= 0 && control(EPOLL_CTL_MOD, PolledDescriptor(number: number, events: events))
  }

  /// All of its descriptors are its own still.
  var isIntact: Bool { holdsTimer && holds(waker.descriptor) && waker.isIntact }

  private var holdsTimer: Bool { holds(alarm.withLock { $0.timer }) }

  func add(_ descriptor: PolledDescriptor) throws(LifecycleError) {
    let isAdded =
      descriptor.isPressure ? addPressureFile(descriptor) : control(EPOLL_CTL_ADD, descriptor)
    guard isAdded else {
      throw .system("watch file descriptor \(descriptor.number)", errno: clinux_errno())
    }
  }

  private func addPressureFile(_ descriptor: PolledDescriptor) -> Bool {
    guard let identity = FileIdentity(of: descriptor.number) else { return false }
    pressureFiles.withLock { $0.append(PressureFile(descriptor: descriptor, identity: identity)) }
    // A wait under way does not know of it.
    wake()
    return true
  }

  /// A descriptor that was closed needs not be removed.
  func remove(_ descriptor: PolledDescriptor) {
    guard descriptor.isPressure else {
      control(EPOLL_CTL_DEL, descriptor)
      return
    }
    pressureFiles.withLock { $0.removeAll { $0.descriptor.number == descriptor.number } }
    // A wait under way holds the file open.
    wake()
  }

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
  ///
  /// - Parameter ready: What has happened, in place of what it was before.
  func wait(milliseconds: Int32, _ ready: inout Ready) {
    ready.removeAll()
    waker.listen()
    guard failure == nil else { return waitWithoutDescriptors(milliseconds, &ready) }
    let isSet = alarm.withLock { alarm in
      alarm.isWaiting = true
      return settle(&alarm)
    }
    // poll(2) would wait for whatever has one of these numbers. A loss that is reported from here on comes with a
    // signal, which ends the wait.
    let isIntact = isSet && holds(waker.descriptor) && !waker.isLost
    waitForFiles(isIntact ? milliseconds : 0, &ready)
    alarm.withLock { $0.isWaiting = false }
    if !isIntact || waker.isLost { ready.isLost = true }
  }

  /// poll(2) waits for a file until it returns, closed or not; epoll_wait(2) does not. So when other code closes every
  /// descriptor of the process, the waker's end that is waited for hangs up. The set's number is invalid then, or that
  /// of another file, which can be written to as a rule. A set can't be.
  private func waitForFiles(_ milliseconds: Int32, _ ready: inout Ready) {
    let beside = openPressureFiles()
    return withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 2 + beside.count) { files in
      files[0] = pollfd(
        fd: epoll.load(ordering: .relaxed), events: Int16(POLLIN | POLLOUT), revents: 0)
      files[1] = pollfd(fd: waker.descriptor, events: 0, revents: 0)
      for (index, file) in beside.enumerated() {
        files[2 + index] = pollfd(
          fd: file.descriptor.number, events: Int16(file.descriptor.events), revents: 0)
      }
      let count = poll(files.baseAddress, nfds_t(files.count), milliseconds)
      // More than the limit on descriptors, which was lowered: then the set has to do.
      if count < 0, clinux_errno() == EINVAL { takeEvents(&ready, within: milliseconds) }
      // A signal handler may end it early, and a time-out leaves all as they are.
      guard count > 0 else { return }
      if files[0].revents & ~Int16(POLLIN) != 0 || files[1].revents != 0 {
        ready.isLost = true
      } else if files[0].revents != 0 {
        takeEvents(&ready, within: 0)
        // Another thread has taken the signal that there was, and has recorded it or is about to.
        if ready.isEmpty { ready.descriptors.append(PolledDescriptor(number: waker.descriptor)) }
      }
      // A stranger's, if the file was closed meanwhile and its number given away.
      for (file, polled) in zip(beside, files[2...]) where polled.revents != 0 && file.isOurs {
        ready.descriptors.append(file.descriptor)
      }
    }
  }

  /// Without those that were closed, as the set forgets its own.
  private func openPressureFiles() -> [PressureFile] {
    pressureFiles.withLock { files in
      if !files.isEmpty { files.removeAll { !$0.isOurs } }
      return files
    }
  }

  private func takeEvents(_ ready: inout Ready, within milliseconds: Int32) {
    withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: 16) { events in
      let count = epoll_wait(
        epoll.load(ordering: .relaxed), events.baseAddress!, Int32(events.count), milliseconds)
      // Else the number is that of another file.
      if count < 0, clinux_errno() != EINTR { ready.isLost = true }
      for event in events.prefix(max(0, Int(count))) { take(event, &ready) }
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
  private func waitWithoutDescriptors(_ milliseconds: Int32, _ ready: inout Ready) {
    poll(nil, 0, milliseconds < 0 ? 10 : min(milliseconds, 10))
    ready.timerExpired = true
    ready.isLost = true
    ready.descriptors.append(PolledDescriptor(number: waker.descriptor))
  }
}
