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
/// Other code of the process may close any of these descriptors and reuse their numbers, and poll(2) may be refused.
/// `wait` reports that as soon as it is known (`Ready.loss`). From then on it uses no descriptor: it returns a hundred
/// times a second, so that signals and deadlines are seen to until the daemon has ended.
///
/// `wake`, `arm`, `add` and `remove` may be called from any thread; `wait` by the listening thread only.
final class EventPoll: Sendable {
  /// The epoll set; -1 until `open`.
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
  /// Whether a loss was reported. Relaxed: used by the listening thread, and at the end.
  private let isLost = Atomic<Bool>(false)

  struct Ready {
    var timerExpired = false
    var descriptors: [PolledDescriptor] = []
    /// A sentence on what was lost; set once.
    var loss: String?

    var isEmpty: Bool { !timerExpired && descriptors.isEmpty && loss == nil }

    /// Removes all, and keeps the capacity.
    mutating func removeAll() {
      timerExpired = false
      descriptors.removeAll(keepingCapacity: true)
      loss = nil
    }
  }

  deinit { close() }

  // MARK: Descriptors

  private var isOpen: Bool { epoll.load(ordering: .acquiring) >= 0 }

  /// Opens the descriptors, all or none, unless they are open.
  func open() throws(LifecycleError) {
    let error = alarm.withLock { alarm -> Int32 in
      if isOpen { return 0 }
      var error = waker.open()
      alarm.timer = clinux_make_timer()
      if error == 0, alarm.timer < 0 { error = clinux_errno() }
      let set = epoll_create1(Int32(EPOLL_CLOEXEC))
      if error == 0, set < 0 { error = clinux_errno() }
      for number in [waker.descriptor, alarm.timer]
      where error == 0 && !Self.control(set, EPOLL_CTL_ADD, PolledDescriptor(number: number)) {
        error = clinux_errno()
      }
      if error == 0 { epoll.store(set, ordering: .releasing) } else { close(set, &alarm) }
      return error
    }
    if error != 0 { throw .system("create the descriptors of the event thread", errno: error) }
  }

  /// Closes them; nobody listens. After a loss they stay open: their numbers may be those of other files.
  func close() {
    if isLost.load(ordering: .relaxed) || !isOpen || !isIntact { return }
    alarm.withLock { close(epoll.exchange(-1, ordering: .releasing), &$0) }
  }

  private func close(_ set: Int32, _ alarm: inout Alarm) {
    waker.close()
    for number in [set, alarm.timer] where number >= 0 { _ = CLinux.close(number) }
    alarm.timer = -1
    alarm.set = .distantFuture
  }

  @discardableResult
  private func control(_ what: Int32, _ descriptor: PolledDescriptor) -> Bool {
    Self.control(epoll.load(ordering: .acquiring), what, descriptor)
  }

  private static func control(_ set: Int32, _ what: Int32, _ descriptor: PolledDescriptor) -> Bool {
    var event = epoll_event()
    event.events = descriptor.events
    event.data.fd = descriptor.number
    return epoll_ctl(set, what, descriptor.number, &event) == 0
  }

  /// Whether the number still refers to the descriptor that was added. The set identifies entries by open file and
  /// number, so another file that reuses a number is not in it, nor are these descriptors in another set.
  func holds(_ descriptor: PolledDescriptor) -> Bool {
    guard descriptor.isPressure else { return holds(descriptor.number) }
    return pressureFiles.withLock { files in
      files.contains { $0.descriptor.number == descriptor.number && $0.isOurs }
    }
  }

  private func holds(_ number: Int32) -> Bool {
    let descriptor = PolledDescriptor(number: number, events: 0)
    guard control(EPOLL_CTL_ADD, descriptor) else { return clinux_errno() == EEXIST }
    control(EPOLL_CTL_DEL, descriptor)
    return false
  }

  /// Whether all of its descriptors are still its own.
  private var isIntact: Bool { holdsTimer && holds(waker.descriptor) && waker.isIntact }

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

  // MARK: Waking

  /// Makes `wait` return. Before `open` nobody waits.
  func wake() { if isOpen { waker.wake() } }

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
    if isLost.load(ordering: .relaxed) { return waitWithoutDescriptors(&ready) }
    guard isOpen else {
      // Who has tried to wake us before could not. Without descriptors it is tried again.
      do { try open() } catch { waitWithoutDescriptors(&ready) }
      return
    }
    waker.listen()
    waker.forgetLoss()
    let isSet = alarm.withLock { alarm in
      alarm.isWaiting = true
      return settle(&alarm)
    }
    // poll(2) would wait for any file that has one of these numbers. A loss that is reported from here on comes with a
    // signal, which ends the wait.
    if isSet, isIntact {
      waitForFiles(milliseconds, &ready)
    } else {
      lose(&ready)
    }
    alarm.withLock { $0.isWaiting = false }
    if ready.loss != nil { isLost.store(true, ordering: .relaxed) }
  }

  /// Notes a loss, with the names of what is not ours any more.
  private func lose(_ ready: inout Ready) {
    let found = [
      holdsTimer ? nil : "its timer", holds(waker.descriptor) && waker.isIntact ? nil : "its waker",
    ].compactMap { $0 }
    // Without the set nothing is in it.
    let names = found.count == 1 ? found[0] : "its descriptors"
    ready.loss =
      "The event thread has lost \(names): other code of this process has closed what is not its own, as with"
      + " close_range(2)."
  }

  /// poll(2) waits for a file until it returns, closed or not; epoll_wait(2) does not. So when other code closes every
  /// descriptor of the process, the waker's end that is waited for hangs up, and the timer still goes off. The set's
  /// number is invalid then, or that of another file, which can be written to as a rule. A set can't be.
  private func waitForFiles(_ milliseconds: Int32, _ ready: inout Ready) {
    let beside = openPressureFiles()
    let timer = alarm.withLock { $0.timer }
    return withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 3 + beside.count) { files in
      files[0] = pollfd(
        fd: epoll.load(ordering: .relaxed), events: Int16(POLLIN | POLLOUT), revents: 0)
      files[1] = pollfd(fd: waker.descriptor, events: 0, revents: 0)
      files[2] = pollfd(fd: timer, events: Int16(POLLIN), revents: 0)
      for (index, file) in beside.enumerated() {
        files[3 + index] = pollfd(
          fd: file.descriptor.number, events: Int16(file.descriptor.events), revents: 0)
      }
      let count = poll(files.baseAddress, nfds_t(files.count), milliseconds)
      if count < 0 { return pollFailed(clinux_errno(), milliseconds, &ready) }
      // A time-out changes nothing.
      if count == 0 { return }
      if files[0].revents & ~Int16(POLLIN) != 0 || files[1].revents != 0 {
        lose(&ready)
      } else if files[0].revents | files[2].revents != 0 {
        takeEvents(&ready, within: 0)
        // Another thread has taken the pending signal, and has recorded it or is about to.
        if ready.isEmpty { ready.descriptors.append(PolledDescriptor(number: waker.descriptor)) }
      }
      // It may be another file's, if the file was closed meanwhile and its number reused.
      for (file, polled) in zip(beside, files[3...]) where polled.revents != 0 && file.isOurs {
        ready.descriptors.append(file.descriptor)
      }
    }
  }

  private func pollFailed(_ error: Int32, _ milliseconds: Int32, _ ready: inout Ready) {
    switch error {
    // A signal handler has ended it early.
    case EINTR: break
    // There are more than the limit on descriptors, which was lowered: then only the set is used.
    case EINVAL: takeEvents(&ready, within: milliseconds)
    case EAGAIN, ENOMEM: usleep(Self.pause)
    default:
      let reason = String(cString: strerror(error))
      ready.loss = "The event thread can't wait: poll(2) is refused: \(reason)."
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
      if count < 0, clinux_errno() != EINTR { lose(&ready) }
      for event in events.prefix(max(0, Int(count))) { take(event, &ready) }
    }
  }

  private func take(_ event: epoll_event, _ ready: inout Ready) {
    let descriptor = PolledDescriptor(number: event.data.fd, events: event.events)
    if descriptor.number == waker.descriptor {
      // Its other end is closed: the waker is gone.
      if event.events != CLINUX_EPOLLIN { lose(&ready) }
      waker.drain()
    } else if alarm.withLock({ takeTimer(descriptor.number, &$0) }) {
      ready.timerExpired = true
      return
    } else if !holds(descriptor.number) {
      // Closed, and held open by a child that was forked: it would be ready for ever.
      ready.loss =
        "The event thread has lost descriptor \(descriptor.number): other code of this process has closed it."
      return
    }
    ready.descriptors.append(descriptor)
  }

  /// Takes an event of the timer by setting it again, not by reading it: if the number belongs to another file by now,
  /// its bytes must not be consumed.
  private func takeTimer(_ number: Int32, _ alarm: inout Alarm) -> Bool {
    guard number == alarm.timer, holds(number) else { return false }
    alarm.set = .distantFuture
    _ = Self.set(alarm.timer, to: nil)
    return true
  }

  private static let pause: UInt32 = 10_000

  /// Waits a moment, and reports the timer and the waker as ready.
  private func waitWithoutDescriptors(_ ready: inout Ready) {
    usleep(Self.pause)
    ready.timerExpired = true
    ready.descriptors.append(PolledDescriptor(number: waker.descriptor))
  }
}
