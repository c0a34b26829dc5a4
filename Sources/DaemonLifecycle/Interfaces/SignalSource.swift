// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Dispatch
import Synchronization

/// The signals of a `SignalMap` as events, with their sender and the number of coalesced deliveries.
///
/// It uses `sigaction` and not only a signalfd: Swift's async main parks thread 0 in sigsuspend with an empty mask,
/// where a signal meant for a descriptor would be taken, and lost. With a signalfd besides the handlers the kernel
/// wakes the listening thread and thread 0 at the same time. The first of them takes the signal, which is counted in
/// the same place. As a rule that is the listening thread, so that there is one wake-up between a signal and its hook,
/// not two.
final class SignalSource: LifecyclePart {
  let map: SignalMap
  /// Whether the daemon runs under a service manager, which reloads by SIGHUP. systemd 262 and later refuse a
  /// notify-reload service without a handler for it, so there is one whatever the map says, and whatever was ignored.
  private let isSupervised: Bool
  /// The waker with which the handlers wake the listening thread, which drains it.
  let waker: Waker
  struct Opened {
    /// The signals whose handlers are installed.
    var signals: [UnixSignal] = []
    /// The signals that were ignored at the start: by nohup(1) or a shell, or by a running system(3) (SIGINT, SIGQUIT).
    var ignored: [UnixSignal] = []
    /// Whether a closed pipe no longer ends the process.
    var ignoresBrokenPipes = false
    /// The signalfd; -1 when it is closed or unavailable, so that the handlers take all signals.
    var direct: Int32 = -1
    /// The signals whose handler is another's.
    var conflicts: [UnixSignal: SignalConflict] = [:]
    /// The addresses of others' handlers that call ours, so that the hooks are called all the same.
    var passingOn: [UnixSignal: UInt] = [:]
    /// The notes that a warning was logged for.
    var warned: Set<String> = []
    /// The time of the last check of who has the signals.
    var lastCheck = MonotonicTime(nanoseconds: 0)
    /// Whether a signal has come since.
    var isUnchecked = false
    /// The times between the checks that follow the launch, in reverse.
    var untilNextCheck = [20, 9, 0.9, 0.1].map { Duration.seconds($0) }
    /// The time of the next of these; `nil` before the launch, and after the last.
    var nextCheck: MonotonicTime?

    /// The time of the next check. Until 10 s after the launch it is 50 ms away while a signal is ignored: a command of
    /// system(3) ends, and leaves the signal its default action.
    var nextLook: MonotonicTime? {
      if ignored.isEmpty || untilNextCheck.isEmpty { return nextCheck }
      return min(nextCheck ?? .distantFuture, .now().advanced(by: .milliseconds(50)))
    }
  }
  let opened = Mutex(Opened())
  /// The terminal in which the daemon was started, if it was.
  private let terminal = OwnTerminal()
  /// Empty between two readings, which reuse its storage: a daemon that is woken allocates nothing for it. Used by the
  /// listening thread only.
  nonisolated(unsafe) private var taken: [TakenSignal] = []

  /// Performs a check on a thread that may block.
  let enqueue: @Sendable (@escaping @Sendable () -> Void) -> Void
  /// Receives what a check has found.
  let report: @Sendable (SourceInput) -> Void

  init(
    map: SignalMap, isSupervised: Bool = false, waker: Waker = Waker(),
    enqueue: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { _ in },
    report: @escaping @Sendable (SourceInput) -> Void = { _ in }
  ) {
    self.map = map
    self.isSupervised = isSupervised
    self.waker = waker
    (self.enqueue, self.report) = (enqueue, report)
  }

  deinit { close() }

  var descriptors: [PolledDescriptor] {
    opened.withLock { $0.direct < 0 ? [] : [PolledDescriptor(number: $0.direct)] }
  }

  /// Includes the waker's descriptor, since a handler may have woken the listening thread.
  func polls(_ descriptor: Int32) -> Bool {
    descriptor == waker.descriptor || opened.withLock { $0.direct == descriptor }
  }

  /// Installs all handlers or none: when one fails, the dispositions of the others are restored.
  @discardableResult func open() throws(LifecycleError) -> MonotonicTime? {
    try map.validate()
    let failure = waker.open()
    if failure != 0 {
      throw .system(
        purpose: "create the sockets that signals wake the listening thread with", errno: failure)
    }
    // SIGHUP too, unless it is mapped or other code of this process handles it.
    let takesReload = isSupervised && map[.sighup] == nil && clinux_signal_handler(SIGHUP) <= 1
    for signal in map.signals + (takesReload ? [.sighup] : []) {
      // Signals that nohup(1), or a shell for a job in the background, has ignored stay ignored.
      let staysIgnored = [.sighup, .sigint, .sigquit].contains(signal)
      let failure = clinux_signal_listen(
        signal.rawValue, waker.pointer, staysIgnored && !(signal == .sighup && isSupervised))
      switch failure {
      case 0: opened.withLock { $0.signals.append(signal) }
      case EALREADY: opened.withLock { $0.ignored.append(signal) }
      default:
        close()
        throw failure == EBUSY
          ? .signalInUse(signal) : .system(purpose: "handle \(signal)", errno: failure)
      }
    }
    // Last, so that it finds a mapped SIGPIPE handled. Without it, `daemon | head` would end the daemon without a save.
    clinux_ignore_broken_pipes()
    return opened.withLock { opened in
      opened.ignoresBrokenPipes = true
      opened.direct = opened.setDirect()
      return opened.nextLook
    }
  }

  /// Reads each signal at most once, in the order in which the last of its kind arrived.
  @discardableResult func read(_ ready: PolledDescriptor, _ take: (SourceInput) -> Void)
    -> MonotonicTime?
  {
    // Under the lock, so that `close` can't hand the descriptor's number to someone else meanwhile.
    let isNewNote = opened.withLock { opened in
      // Drained before the records are taken, as the waker was: a signal in between causes one needless wake-up.
      if ready.number >= 0, ready.number == opened.direct { clinux_signal_drain(opened.direct) }
      taken.take(opened.signals)
      if !taken.isEmpty { opened.isUnchecked = true }
      return opened.notePassedOn(taken)
    }
    if isNewNote { sendNote() }
    for signal in taken { take(input(of: signal)) }
    taken.removeAll(keepingCapacity: true)
    return nil
  }

  /// Checks who has the signals at the end of the launch, and four times while the body starts code that may take them;
  /// then as transitions and checks of health end. After a signal also where the handlers are ours: a rival signalfd may
  /// have taken others. Not with each signal, since a check reads /proc, and not before its hooks, which would wait for it.
  func receive(_ fact: LifecycleFact) -> MonotonicTime? {
    switch fact {
    case .launched where !map.signals.isEmpty: return checkAndPlan()
    case .ended, .healthy, .unhealthy: if isCheckDue() { check() }
    default: break
    }
    return nil
  }

  @discardableResult func wake(_: (SourceInput) -> Void) -> MonotonicTime? {
    takeFormerlyIgnored()
    let isDue = opened.withLock { $0.nextCheck ?? .distantFuture <= .now() }
    return isDue ? checkAndPlan() : opened.withLock(\.nextLook)
  }

  private func checkAndPlan() -> MonotonicTime? {
    check()
    return opened.withLock { opened in
      opened.nextCheck = opened.untilNextCheck.popLast().map { .now().advanced(by: $0) }
      return opened.nextLook
    }
  }

  private func input(of taken: TakenSignal) -> SourceInput {
    let (signal, record) = (taken.signal, taken.record)
    let isHangUp = signal == .sighup && terminal?.wasClosed(asToldBy: record) == true
    let sender = isHangUp ? .kernel : LifecycleCause.Sender(record)
    let cause = LifecycleCause(.signal(signal, from: sender, coalesced: Int(record.count)))
    return map.event(of: signal, cause).map { .event($0) }
      ?? .fact(.unmappedReload(at: .now()))
  }

  @discardableResult
  func close() -> [SourceInput] {
    let closing = opened.withLock { opened in
      defer { opened = Opened() }
      return opened
    }
    for signal in closing.signals {
      closing.conflicts[signal]?.source?.cancel()
      clinux_signal_unlisten(signal.rawValue)
    }
    if closing.ignoresBrokenPipes { clinux_heed_broken_pipes() }
    clinux_close_signal_descriptor(closing.direct)
    // Last: the signals that have arrived are this source's until they are taken below.
    defer { for signal in closing.signals { clinux_signal_release(signal.rawValue) } }
    var taken: [TakenSignal] = []
    taken.take(closing.signals)
    let inputs = taken.map(input)
    return closing.conflictNote == nil ? inputs : [.fact(.statusNote(.signals, nil))] + inputs
  }
}

/// A signal that was taken.
struct TakenSignal {
  let signal: UnixSignal
  var record: clinux_signal_record
}

extension [TakenSignal] {
  /// Takes each of `signals` at most once, in the order in which the last of its kind arrived.
  ///
  /// Repeats when a signal arrived meanwhile: of two signals, the later may be in a slot that is still to be read, and
  /// the earlier in one that was. The number of repetitions is bounded.
  mutating func take(_ signals: [UnixSignal]) {
    var record = clinux_signal_record()
    for _ in 0..<64 {
      let before = clinux_signal_count()
      for signal in signals where clinux_signal_take(signal.rawValue, &record) {
        add(signal, record)
      }
      if clinux_signal_count() == before { break }
    }
    if count > 1 { sort { $0.record.sequence < $1.record.sequence } }
  }

  private mutating func add(_ signal: UnixSignal, _ record: clinux_signal_record) {
    guard let index = firstIndex(where: { $0.signal == signal }) else {
      append(TakenSignal(signal: signal, record: record))
      return
    }
    let earlier = self[index].record
    self[index].record = record
    self[index].record.count += earlier.count
    if earlier.origin == CLINUX_SENDER_KERNEL { self[index].record.origin = earlier.origin }
  }
}
