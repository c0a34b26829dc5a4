// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

/// A file descriptor, and the poll(2) events to wait for, or those that have happened.
package struct PolledDescriptor: Sendable {
  let number: Int32
  /// POLLOUT is a trap: no file that is polled here is ever writable, so a writable number is another file's by now.
  let events: UInt32
  /// Distinguishes it from an earlier file with its number. Set as it is added to a poll.
  fileprivate var serial: UInt64 = 0

  package init(number: Int32, events: UInt32 = UInt32(POLLIN | POLLOUT)) {
    (self.number, self.events) = (number, events)
  }

  fileprivate var forPoll: pollfd { pollfd(fd: number, events: Int16(events), revents: 0) }
  /// Whether nothing but errors will follow, for ever.
  fileprivate var isOver: Bool { events & ~UInt32(POLLIN | POLLPRI) != 0 }
  /// Whether it was closed, or its number is another file's.
  fileprivate var isLost: Bool { events & UInt32(POLLNVAL | POLLOUT) != 0 }
}

/// The poll of the listening thread: a waker, a timerfd for the next deadline, and the descriptors of parts.
///
/// Other code of the process may close any of these. When poll(2) or the use of one shows that, all are left to that
/// code, since its files may have their numbers, and the next `wait` opens a new waker and a new timer. If they can't be
/// opened, or poll(2) is refused, `wait` returns a hundred times a second, for the time that the daemon needs to end.
///
/// `wake`, `arm`, `add` and `remove` may be called from any thread; `wait` by the listening thread only.
final class EventPoll: Sendable {
  private struct State {
    /// The timerfd; -1 while the poll is closed.
    var timer: Int32 = -1
    /// Whether poll(2) is waiting, so that an earlier deadline must be set at once. Otherwise the next wait sets it,
    /// and a delivery that is over by then costs nothing.
    var isWaiting = false
    /// The time at which `wait` should return; `.distantFuture` for none.
    var wanted = MonotonicTime.distantFuture
    /// The time to which the timerfd is set; the distant future when it is disarmed, `nil` when it has gone off or is lost.
    var set: MonotonicTime? = .distantFuture
    /// The descriptors of the parts.
    var polled: [PolledDescriptor] = []
    var lastSerial: UInt64 = 0

    /// Sets the timer if necessary. Returns false when it is lost.
    mutating func settle() -> Bool {
      if set == wanted { return true }
      let isSet = clinux_set_timer(
        timer, wanted == .distantFuture ? 0 : max(wanted.nanoseconds, 1))
      set = isSet ? wanted : nil
      return isSet
    }

    /// Returns false when it is not polled any more.
    mutating func drop(_ descriptor: PolledDescriptor) -> Bool {
      guard let index = polled.firstIndex(where: { $0.serial == descriptor.serial }) else {
        return false
      }
      polled.remove(at: index)
      return true
    }
  }

  private let state = Mutex<State>(State())
  let waker = Waker()

  /// The result of a wait. An object, which is not copied as it is passed on.
  final class Ready {
    var timerExpired = false
    /// The descriptors with an event.
    var descriptors: [PolledDescriptor] = []
    /// A sentence on what was lost.
    var loss: String?
  }

  deinit { close() }

  // MARK: Descriptors

  /// Opens the waker and the timer, both or neither, unless they are open.
  func open() throws(LifecycleError) {
    let error = state.withLock { state -> Int32 in
      if state.timer >= 0 { return 0 }
      let error = waker.open()
      if error != 0 { return error }
      state.timer = clinux_make_timer()
      if state.timer >= 0 { return 0 }
      defer { waker.close() }
      return clinux_errno()
    }
    if error != 0 {
      throw .system(purpose: "create the descriptors of the listening thread", errno: error)
    }
  }

  /// Closes the waker and the timer; no thread listens.
  func close() {
    state.withLock { state in
      waker.close()
      // Fails on any file that is not a timer.
      if clinux_set_timer(state.timer, 0) { CLinux.close(state.timer) }
      state = State(wanted: state.wanted)
    }
  }

  func add(_ descriptor: PolledDescriptor) {
    state.withLock { state in
      state.lastSerial += 1
      state.polled.append(descriptor)
      state.polled[state.polled.count - 1].serial = state.lastSerial
    }
    // A wait that is under way does not include it.
    wake()
  }

  func remove(_ descriptor: PolledDescriptor) {
    state.withLock { state in state.polled.removeAll { $0.number == descriptor.number } }
    // A wait that is under way keeps the file open.
    wake()
  }

  // MARK: Waking

  /// Makes `wait` return. Before `open` no thread waits.
  func wake() { waker.wake() }

  /// Makes `wait` return at `deadline`. A timer that is set to an earlier time stays set, so that not every hook sets
  /// it: `wait` may return once too soon. `nil` disarms the timer, so that an idle daemon is never woken.
  func arm(at deadline: MonotonicTime?) {
    state.withLock { state in
      state.wanted = deadline ?? .distantFuture
      let isLater = state.wanted != .distantFuture && state.set.map { $0 < state.wanted } ?? false
      // If the timer is lost, the next wait notices.
      if state.isWaiting, !isLater, !state.settle() { wake() }
    }
  }

  // MARK: Waiting

  /// Waits for a descriptor, the timer, a wake-up or the time-out (milliseconds, -1: none). The waker and the timer are
  /// drained here; the caller reads the other descriptors. A wake-up is among the descriptors.
  ///
  /// - Parameter ready: Receives the events, in place of earlier ones.
  func wait(milliseconds: Int32, _ ready: Ready) {
    (ready.timerExpired, ready.loss) = (false, nil)
    ready.descriptors.removeAll(keepingCapacity: true)
    guard let (timer, descriptors) = begin(ready) else { return pause(ready) }
    var lost: String?
    withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 2 + descriptors.count) { polled in
      polled[0] = pollfd(fd: waker.descriptor, events: Int16(POLLIN), revents: 0)
      polled[1] = PolledDescriptor(number: timer).forPoll
      for (index, descriptor) in descriptors.enumerated() { polled[2 + index] = descriptor.forPoll }
      // poll(2) waits for the files that it began with, closed or not. So when other code closes every descriptor of
      // the process, the waker's polled end hangs up.
      let count = poll(polled.baseAddress, nfds_t(polled.count), milliseconds)
      if count > 0 { lost = take(polled, descriptors, ready) }
      if count < 0 { pollFailed(clinux_errno(), ready) }
    }
    state.withLock { state in
      state.isWaiting = false
      if ready.timerExpired { state.set = nil }
      if let lost { lose(lost, &state, ready) }
    }
  }

  /// Begins a wait: returns the timer and the other descriptors. `nil` without a timer.
  private func begin(_ ready: Ready) -> (timer: Int32, polled: [PolledDescriptor])? {
    state.withLock { state in
      guard state.timer >= 0 else { return nil }
      guard state.settle() else {
        lose("its timer", &state, ready)
        return nil
      }
      state.isWaiting = true
      return (state.timer, state.polled)
    }
  }

  /// Notes what is ready. Returns what is lost.
  private func take(
    _ polled: UnsafeMutableBufferPointer<pollfd>, _ descriptors: [PolledDescriptor], _ ready: Ready
  ) -> String? {
    if polled[0].revents != 0 {
      guard polled[0].revents == Int16(POLLIN), waker.drain() else { return "its waker" }
      ready.descriptors.append(PolledDescriptor(number: waker.descriptor))
    }
    ready.timerExpired = polled[1].revents == Int16(POLLIN)
    if !ready.timerExpired, polled[1].revents != 0 { return "its timer" }
    for (polled, descriptor) in zip(polled[2...], descriptors) where polled.revents != 0 {
      let found = PolledDescriptor(
        number: polled.fd, events: UInt32(UInt16(bitPattern: polled.revents)))
      // Removed since the wait began: the number may have been another file's by then.
      if found.isOver || found.isLost, !state.withLock({ $0.drop(descriptor) }) { continue }
      if found.isLost { return "descriptor \(found.number)" }
      ready.descriptors.append(found)
    }
    return nil
  }

  /// Notes a loss. The other descriptors stay open: which numbers are still ours is unknown.
  private func lose(_ name: String, _ state: inout State, _ ready: Ready) {
    ready.loss =
      "The listening thread has lost \(name): other code of this process has closed it, for example with close_range(2)."
    waker.forget()
    (state.timer, state.set, state.polled) = (-1, .distantFuture, [])
  }

  private func pollFailed(_ error: Int32, _ ready: Ready) {
    // A signal handler has ended it early.
    if error == EINTR { return }
    if error != EAGAIN, error != ENOMEM {
      let reason = String(cString: strerror(error))
      ready.loss = "The listening thread can't wait: poll(2) is refused: \(reason)."
    }
    pause(ready)
  }

  /// Takes the place of a wait: after 10 ms it reports the timer and the waker as ready.
  private func pause(_ ready: Ready) {
    usleep(10_000)
    try? open()
    ready.timerExpired = true
    ready.descriptors.append(PolledDescriptor(number: waker.descriptor))
  }
}
