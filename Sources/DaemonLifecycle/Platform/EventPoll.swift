// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

/// A file descriptor, and the epoll(7) events to wait for, or that have occurred.
struct PolledDescriptor: Sendable {
  let number: Int32
  var events = CLINUX_EPOLLIN

  /// Whether it is a pressure file of the kernel. Polling it, or a set that contains it, consumes its event, so it is
  /// polled directly.
  var isPressure: Bool { events & UInt32(POLLPRI) != 0 }
}

/// The poll of the listening thread: an epoll set with a waker and a timerfd for the next deadline, and the pressure
/// files beside it.
///
/// Other code of the process may close any of these descriptors and reuse their numbers. `wait` reports that as soon as
/// it is known (`Ready.isLost`), and `repair` opens new ones.
///
/// `wake`, `arm`, `add` and `remove` may be called from any thread; `wait` and `repair` by the listening thread only.
final class EventPoll: Sendable {
  /// The epoll set; -1 when there is none. Written by `init` and by `repair`. Relaxed on the listening thread, which
  /// calls `repair`.
  private let epoll = Atomic<Int32>(-1)
  let waker = Waker()
  /// A file beside the set, and its identity, which distinguishes it from another file that reuses its number.
  private struct PressureFile {
    let descriptor: PolledDescriptor
    let identity: FileIdentity

    var isOurs: Bool { FileIdentity(of: descriptor.number) == identity }
  }
  private let pressureFiles = Mutex<[PressureFile]>([])
  private struct Alarm {
    /// The timerfd; -1 when there is none.
    var timer: Int32 = -1
    /// The time at which `wait` should return; `.distantFuture` for none.
    var wanted = MonotonicTime.distantFuture
    /// The time to which the timerfd is set; the distant future when it is disarmed. During a wait it may be earlier
    /// than `wanted`, never later.
    var set = MonotonicTime.distantFuture
    /// Whether the listening thread is in `wait`, so that a change of `wanted` must be set at once. Otherwise it is set
    /// before the next wait, and a delivery that is over by then costs nothing.
    var isWaiting = false
  }
  private let alarm = Mutex(Alarm())

  struct Ready {
    var timerExpired = false
    var descriptors: [PolledDescriptor] = []
    /// Whether a descriptor may have been lost, so that `repair` is needed.
    var isLost = false

    var isEmpty: Bool { !timerExpired && descriptors.isEmpty && !isLost }

    /// Removes all, and keeps the capacity.
    mutating func removeAll() {
      timerExpired = false
      descriptors.removeAll(keepingCapacity: true)
      isLost = false
    }
  }

  private let incomplete = Mutex<LifecycleError?>(nil)

  /// The error with which opening one of the descriptors failed. A subject does not start then. While it is set, `wait`
  /// checks a hundred times a second instead, and nothing is lost.
  var failure: LifecycleError? { incomplete.withLock { $0 } }

  init() { completeDescriptors() }

  deinit {
    let (keepsTimer, set) = (holdsTimer, epoll.load(ordering: .relaxed))
    let timer = alarm.withLock { $0.timer }
    // A number that was lost must not be closed.
    let closesSet = holds(waker.descriptor) || keepsTimer
    if keepsTimer { close(timer) }
    if closesSet { close(set) }
  }

  // MARK: Descriptors

  /// Opens the descriptors that are missing.
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

  /// Whether the number still refers to the descriptor that was added. The set identifies entries by open file and
  /// number, so another file that reuses a number is not in it, nor are these descriptors in another set.
  func holds(_ descriptor: PolledDescriptor) -> Bool {
    guard descriptor.isPressure else { return holds(descriptor.number, descriptor.events) }
    return pressureFiles.withLock { files in
      files.contains { $0.descriptor.number == descriptor.number && $0.isOurs }
    }
  }

  private func holds(_ number: Int32, _ events: UInt32 = CLINUX_EPOLLIN) -> Bool {
    number >= 0 && control(EPOLL_CTL_MOD, PolledDescriptor(number: number, events: events))
  }

  /// Whether all of its descriptors are still its own.
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
    // A wait that is under way does not include it.
    wake()
    return true
  }

  /// Removes a descriptor. One that was closed need not be removed.
  func remove(_ descriptor: PolledDescriptor) {
    guard descriptor.isPressure else {
      control(EPOLL_CTL_DEL, descriptor)
      return
    }
    pressureFiles.withLock { $0.removeAll { $0.descriptor.number == descriptor.number } }
    // A wait that is under way keeps the file open.
    wake()
  }

  /// Opens new descriptors for lost ones, whose numbers are not touched. Returns false when none was missing.
  ///
  /// Descriptors that were added must be checked with `holds`, and added again if it returns false.
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

  /// Makes `wait` return at `deadline`. A later deadline than the one set costs nothing: the timer is set again when it
  /// fires early. `nil` disarms it, so that an idle daemon is never woken.
  func arm(at deadline: MonotonicTime?) {
    let isSet = alarm.withLock { alarm in
      alarm.wanted = deadline ?? .distantFuture
      return !alarm.isWaiting || settle(&alarm)
    }
    if !isSet { waker.reportLoss() }
  }

  /// Sets the timer if necessary. Returns false when it is lost.
  private func settle(_ alarm: inout Alarm) -> Bool {
    let isIdle = alarm.wanted == .distantFuture
    guard alarm.wanted < alarm.set || isIdle && alarm.set != .distantFuture else { return true }
    alarm.set = alarm.wanted
    return Self.set(alarm.timer, to: isIdle ? nil : alarm.wanted)
  }

  /// Whether the timer will wake the listening thread.
  var isArmed: Bool { alarm.withLock { $0.wanted != .distantFuture } }

  /// Sets a timer, which is not readable afterwards even if it had fired.
  private static func set(_ timer: Int32, to deadline: MonotonicTime?) -> Bool {
    clinux_set_timer(timer, deadline.map { max($0.nanoseconds, 1) } ?? 0, true)
  }

  // MARK: Waiting

  /// Waits for a descriptor, the timer, a wake-up or the time-out (milliseconds, -1: none). The waker and the timer are
  /// drained here; the caller reads the other descriptors. A wake-up is among the descriptors.
  ///
  /// - Parameter ready: Receives the events, in place of earlier ones.
  func wait(milliseconds: Int32, _ ready: inout Ready) {
    ready.removeAll()
    waker.listen()
    guard failure == nil else { return waitWithoutDescriptors(milliseconds, &ready) }
    let isSet = alarm.withLock { alarm in
      alarm.isWaiting = true
      return settle(&alarm)
    }
    // poll(2) would wait for any file that has one of these numbers. A loss that is reported from here on comes with a
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
      // There are more than the limit on descriptors, which was lowered: then only the set is used.
      if count < 0, clinux_errno() == EINVAL { takeEvents(&ready, within: milliseconds) }
      // A signal handler may end it early, and a time-out changes nothing.
      guard count > 0 else { return }
      if files[0].revents & ~Int16(POLLIN) != 0 || files[1].revents != 0 {
        ready.isLost = true
      } else if files[0].revents != 0 {
        takeEvents(&ready, within: 0)
        // Another thread has taken the pending signal, and has recorded it or is about to.
        if ready.isEmpty { ready.descriptors.append(PolledDescriptor(number: waker.descriptor)) }
      }
      // It may be another file's, if the file was closed meanwhile and its number reused.
      for (file, polled) in zip(beside, files[2...]) where polled.revents != 0 && file.isOurs {
        ready.descriptors.append(file.descriptor)
      }
    }
  }

  /// Returns the pressure files that are still open; the set drops closed ones itself.
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

  /// Takes an event of the timer by setting it again, not by reading it: if the number belongs to another file by now,
  /// its bytes must not be consumed.
  private func takeTimer(_ number: Int32, _ alarm: inout Alarm) -> Bool {
    guard number == alarm.timer else { return false }
    alarm.set = .distantFuture
    _ = Self.set(alarm.timer, to: nil)
    return true
  }

  /// Waits without descriptors, and reports all as ready, so that opening them is tried again.
  private func waitWithoutDescriptors(_ milliseconds: Int32, _ ready: inout Ready) {
    poll(nil, 0, milliseconds < 0 ? 10 : min(milliseconds, 10))
    ready.timerExpired = true
    ready.isLost = true
    ready.descriptors.append(PolledDescriptor(number: waker.descriptor))
  }
}
