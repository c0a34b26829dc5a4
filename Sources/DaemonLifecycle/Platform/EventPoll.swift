// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

/// A file descriptor, and the poll(2) events to wait for, or those that have happened.
struct PolledDescriptor: Sendable {
  let number: Int32
  var events = UInt32(POLLIN)
}

/// The poll of the listening thread: a waker, a timerfd for the next deadline, and the descriptors of sources.
///
/// Other code of the process may close any of these and reuse their numbers, and poll(2) may be refused. Without its
/// waker, its timer or poll(2), `wait` returns a hundred times a second, for the time that the daemon needs to end.
///
/// `wake`, `arm`, `add` and `remove` may be called from any thread; `wait` by the listening thread only.
final class EventPoll: Sendable {
  private enum Phase {
    /// Without descriptors.
    case closed
    /// Between two waits: what is armed is set before the next one, and a delivery that is over by then costs nothing.
    case open
    /// In `wait`, so that an earlier deadline must be set at once.
    case waiting
    /// Something is lost, which the listening thread has not reported yet.
    case losing(String)
    case lost
  }

  private struct State {
    var phase = Phase.closed
    /// The files of the timer and of the sources; `nil` while there are none, and after a loss.
    var known: KnownFiles?
    /// The timerfd; -1 when there is none.
    var timer: Int32 = -1
    /// The time at which `wait` should return; `.distantFuture` for none.
    var wanted = MonotonicTime.distantFuture
    /// The time to which the timerfd is set; the distant future when it is disarmed, `nil` when it has gone off.
    var set: MonotonicTime? = .distantFuture
    /// The descriptors of the sources.
    var polled: [PolledDescriptor] = []

    /// Whether a number leads to what was added under it.
    func isOurs(_ number: Int32) -> Bool { known?.contains(number) ?? false }

    /// Sets the timer if necessary, unless the waker has set it meanwhile. Returns false when it is lost.
    mutating func settle(_ waker: Waker) -> Bool {
      if set == wanted { return isOurs(timer) }
      set = wanted
      let isSet = setTimer(wanted == .distantFuture ? 0 : max(wanted.nanoseconds, 1))
      return isSet && (!waker.isRinging || setTimer(1))
    }

    func setTimer(_ nanoseconds: Int64) -> Bool {
      isOurs(timer) && clinux_set_timer(timer, nanoseconds)
    }
  }

  private let state = Mutex<State>(State())
  let waker = Waker()

  /// What a wait has found. An object, which is not copied as it is passed on.
  final class Ready {
    var timerExpired = false
    /// The numbers of the descriptors with an event.
    var descriptors: [PolledDescriptor] = []
    /// The descriptors that were closed: by their source, or by other code.
    var closed: [Int32] = []
    /// A sentence on what was lost; set once.
    var loss: String?
  }

  deinit { close() }

  // MARK: Descriptors

  /// Opens the waker and the timer, both or neither, unless they are open.
  func open() throws(LifecycleError) {
    let error = state.withLock { state -> Int32 in
      guard case .closed = state.phase else { return 0 }
      let error = open(&state)
      if error != 0 { waker.close() }
      return error
    }
    if error != 0 { throw .system("create the descriptors of the event thread", errno: error) }
  }

  private func open(_ state: inout State) -> Int32 {
    let error = waker.open()
    if error != 0 { return error }
    guard let known = KnownFiles() else { return clinux_errno() }
    let timer = clinux_make_timer()
    let refusal = timer < 0 ? clinux_errno() : known.add(timer)
    if refusal != 0 {
      if timer >= 0 { CLinux.close(timer) }
      CLinux.close(known.number)
      return refusal
    }
    waker.lend(timer, known)
    (state.known, state.timer, state.phase) = (known, timer, .open)
    return 0
  }

  /// Closes them; nobody listens. What was lost is not closed: its number may be that of another file.
  func close() {
    state.withLock { state in
      waker.close()
      if let known = state.known, known.contains(state.timer) {
        CLinux.close(state.timer)
        CLinux.close(known.number)
      }
      state = State()
    }
  }

  func add(_ descriptor: PolledDescriptor) throws(LifecycleError) {
    let error = state.withLock { state in
      let error = state.known?.add(descriptor.number) ?? EBADF
      if error == 0 { state.polled.append(descriptor) }
      return error
    }
    if error != 0 { throw .system("watch file descriptor \(descriptor.number)", errno: error) }
    // A wait that is under way does not include it.
    wake()
  }

  /// Removes a descriptor. One that was closed need not be removed.
  func remove(_ descriptor: PolledDescriptor) {
    state.withLock { state in
      state.polled.removeAll { $0.number == descriptor.number }
      state.known?.remove(descriptor.number)
    }
    // A wait that is under way keeps the file open.
    wake()
  }

  // MARK: Waking

  /// Makes `wait` return. Before `open` nobody waits.
  func wake() { if !waker.wake() { state.withLock { lose("its waker", &$0) } } }

  /// Makes `wait` return at `deadline`. `nil` disarms the timer, so that an idle daemon is never woken.
  func arm(at deadline: MonotonicTime?) {
    state.withLock { state in
      state.wanted = deadline ?? .distantFuture
      if case .waiting = state.phase, !state.settle(waker) { lose("its timer", &state) }
    }
  }

  /// Has the listening thread report a loss, for which the descriptor that is left wakes it.
  private func lose(_ name: String, _ state: inout State) {
    switch state.phase {
    case .open, .waiting:
      state.phase = .losing(
        "The event thread has lost \(name): other code of this process has closed a descriptor of this package,"
          + " for example with close_range(2).")
      if !waker.wake() { _ = state.setTimer(1) }
      waker.takeBackTimer()
      state.known = nil
    case .closed, .losing, .lost: break
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
    ready.closed.removeAll(keepingCapacity: true)
    guard let (timer, descriptors) = begin(ready) else { return }
    withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 2 + descriptors.count) { polled in
      polled[0] = pollfd(fd: waker.descriptor, events: Int16(POLLIN), revents: 0)
      // A timer can't be written to, and most files that may reuse its number can.
      polled[1] = pollfd(fd: timer, events: Int16(POLLIN | POLLOUT), revents: 0)
      for (index, descriptor) in descriptors.enumerated() {
        polled[2 + index] = pollfd(
          fd: descriptor.number, events: Int16(descriptor.events), revents: 0)
      }
      // It waits for the files that it has begun with, closed or not. So when other code closes every descriptor of the
      // process, the waker's end that is waited for hangs up.
      let count = poll(polled.baseAddress, nfds_t(polled.count), milliseconds)
      if count > 0 {
        take(polled[0].revents, polled[1].revents, ready)
        for polled in polled[2...] where polled.revents != 0 {
          let events = UInt32(UInt16(bitPattern: polled.revents))
          ready.descriptors.append(PolledDescriptor(number: polled.fd, events: events))
        }
      } else if count < 0 {
        pollFailed(clinux_errno())
      }
    }
    end(ready)
  }

  /// Begins a wait: returns the timer and the other descriptors. `nil` without descriptors, after a moment.
  private func begin(_ ready: Ready) -> (timer: Int32, polled: [PolledDescriptor])? {
    let begun = state.withLock { state -> (Int32, [PolledDescriptor])? in
      guard case .open = state.phase else { return nil }
      state.phase = .waiting
      // Were all numbers those of others' timers by now, nothing would end the wait.
      guard state.settle(waker) else {
        lose("its timer", &state)
        return nil
      }
      return (state.timer, state.polled)
    }
    if let begun { return begun }
    usleep(Self.pause)
    // Where there were no descriptors at first.
    try? open()
    ready.timerExpired = true
    ready.descriptors.append(PolledDescriptor(number: waker.descriptor))
    end(ready)
    return nil
  }

  private func end(_ ready: Ready) {
    state.withLock { state in
      switch state.phase {
      case .waiting: state.phase = .open
      case .losing(let loss):
        ready.loss = loss
        state.phase = .lost
      case .closed, .open, .lost: break
      }
      if ready.timerExpired { state.set = nil }
      // The event of a number that was closed may be that of another file.
      ready.descriptors.removeAll { descriptor in
        if descriptor.number == waker.descriptor || state.isOurs(descriptor.number) { return false }
        ready.closed.append(descriptor.number)
        state.polled.removeAll { $0.number == descriptor.number }
        return true
      }
    }
  }

  private func take(_ wakerEvents: Int16, _ timerEvents: Int16, _ ready: Ready) {
    ready.timerExpired = timerEvents == Int16(POLLIN)
    if wakerEvents != 0 || ready.timerExpired && waker.takeRing() {
      ready.descriptors.append(PolledDescriptor(number: waker.descriptor))
      if wakerEvents & ~Int16(POLLIN) != 0 || !waker.drain() {
        state.withLock { lose("its waker", &$0) }
      }
    }
    if !ready.timerExpired, timerEvents != 0 {
      state.withLock { lose("its timer", &$0) }
    }
  }

  private static let pause: UInt32 = 10_000

  private func pollFailed(_ error: Int32) {
    switch error {
    // A signal handler has ended it early.
    case EINTR: break
    case EAGAIN, ENOMEM: usleep(Self.pause)
    default:
      let reason = String(cString: strerror(error))
      state.withLock {
        $0.phase = .losing("The event thread can't wait: poll(2) is refused: \(reason).")
      }
    }
  }
}
