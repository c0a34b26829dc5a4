// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Dispatch
import Synchronization

/// A signal of a subject whose handler other code of the process has replaced.
///
/// The handler is not taken back. Where it is Dispatch's, the subject has a `DispatchSource` too: Dispatch gives each
/// signal to all of its sources. The subject's signalfd leaves the signal alone, so that it arrives one way only.
struct SignalConflict: Sendable {
  /// The handler's address.
  let handler: UInt
  let source: DispatchSource?
  /// The line for the operator, which may be empty. `nil` while Dispatch registers the source: until then nothing has
  /// been changed.
  var note: String?

  /// The address of a signal's handler. SIGINT and SIGQUIT that are ignored count as ours: system(3) ignores them while
  /// it runs.
  static func handler(of signal: UnixSignal) -> UInt {
    let handler = clinux_signal_handler(signal.rawValue)
    let mayPass = handler == 1 && (signal == .sigint || signal == .sigquit)
    return mayPass ? clinux_own_handler() : handler
  }
}

extension SignalSource.Opened {
  /// Notes signals that another handler has passed on. Returns whether that may change the note for the operator.
  mutating func notePassedOn(_ taken: [TakenSignal]) -> Bool {
    var isNew = false
    for one in taken where one.record.origin == CLINUX_SENDER_PASSED_ON {
      let handler = SignalConflict.handler(of: one.signal)
      if passingOn.updateValue(handler, forKey: one.signal) != handler { isNew = true }
    }
    return isNew
  }

  /// The line on one signal; `nil` without a conflict, or when its hook is called all the same.
  func note(on signal: UnixSignal) -> String? {
    guard let conflict = conflicts[signal], passingOn[signal] != conflict.handler,
      conflict.note?.isEmpty == false
    else { return nil }
    return conflict.note
  }

  var conflictNote: String? {
    let notes = signals.compactMap(note)
    return notes.isEmpty ? nil : notes.joined(separator: "; ")
  }

  /// Opens the signalfd if there is none, or changes which signals it takes. Returns its number.
  func setDirect() -> Int32 {
    let ours = signals.lazy.filter { conflicts[$0]?.note == nil }
    return clinux_signal_descriptor(direct, ours.reduce(0) { $0 | 1 << UInt64($1.rawValue - 1) })
  }
}

extension SignalSource {
  /// Finds out who has the signals, on another thread: the caller may be the listening thread.
  func check() {
    opened.withLock { ($0.lastCheck, $0.isUnchecked) = (.now(), false) }
    enqueue { [weak self] in self?.resolveConflicts() }
  }

  /// Whether signals have come since the last check, and that was over 5 s ago, or a handler shows work for
  /// `resolveConflicts`. From any thread; it makes a system call for each signal.
  func isCheckDue() -> Bool {
    opened.withLock { opened in
      opened.isUnchecked && opened.lastCheck.duration(to: .now()) > .seconds(5)
        || opened.ignored.contains { clinux_signal_handler($0.rawValue) == 0 }
        || opened.signals.contains {
          SignalConflict.handler(of: $0) != opened.conflicts[$0]?.handler ?? clinux_own_handler()
        }
    }
  }

  /// Takes signals that were ignored at the start and no longer are: nohup(1) leaves them ignored, and system(3) does not.
  func takeFormerlyIgnored() {
    opened.withLock { opened in
      let count = opened.signals.count
      opened.ignored.removeAll { signal in
        guard clinux_signal_handler(signal.rawValue) == 0,
          clinux_signal_listen(signal.rawValue, waker.pointer, true) == 0
        else { return false }
        opened.signals.append(signal)
        return true
      }
      if opened.signals.count > count, opened.direct >= 0 { _ = opened.setDirect() }
    }
  }

  /// Finds out who has the signals now, joins Dispatch, and reports.
  ///
  /// Not on the listening thread: it may wait for the dynamic linker, for /proc and for a thread of Dispatch's.
  func resolveConflicts() {
    takeFormerlyIgnored()
    let (signals, descriptor) = opened.withLock { ($0.signals, $0.direct) }
    // Dispatch's, which compete with our handler. They exist also where Dispatch has put our handler back.
    let descriptors = clinux_signal_descriptors(descriptor, 0)
    for signal in signals {
      let handler = SignalConflict.handler(of: signal)
      let known = opened.withLock { $0.conflicts[signal] }
      if known?.handler == handler { continue }
      let owner = HandlerOwner(handler, of: signal, map[signal], descriptors)
      let isDispatch = owner?.isDispatch == true
      if isDispatch, known?.source == nil {
        join(signal, handler, owner)
      } else if isDispatch, known?.note == nil {
        // The registration handler settles it.
      } else if known != nil || owner != nil {
        // The existing source stays: signals would be lost while a new one takes its place.
        settle(signal, handler, owner, isDispatch ? known?.source : nil)
      }
    }
  }

  private func join(_ signal: UnixSignal, _ handler: UInt, _ owner: HandlerOwner?) {
    // A later check tries again.
    guard DispatchThreads.canBeHad else { return }
    // A separate serial queue gets a thread, even while the threads of other queues are blocked.
    let queue = DispatchQueue(label: "lifecycle-signals")
    let source =
      DispatchSource.makeSignalSource(signal: signal.rawValue, queue: queue) as! DispatchSource
    // The source retains itself until it is cancelled.
    source.setEventHandler { [waker] in
      clinux_signal_arrived(signal.rawValue, waker.pointer, UInt32(clamping: source.data))
    }
    source.setRegistrationHandler { [weak self] in
      guard let self else { return }
      // The registration has failed if Dispatch got no descriptor for it.
      let descriptor = opened.withLock { $0.direct }
      let descriptors = clinux_signal_descriptors(descriptor, .max)
      settle(signal, handler, signal.isIn(descriptors) ? owner : nil, source)
    }
    let replaced: DispatchSource? = opened.withLock { opened in
      guard opened.signals.contains(signal) else { return source }
      let new = SignalConflict(handler: handler, source: source)
      return opened.conflicts.updateValue(new, forKey: signal)?.source
    }
    replaced?.cancel()
    source.activate()
  }

  /// Leaves a signal to its owner, or takes it back when there is none any more, and reports that.
  private func settle(
    _ signal: UnixSignal, _ handler: UInt, _ owner: HandlerOwner?, _ source: DispatchSource?
  ) {
    let kept = owner == nil ? nil : source
    let settled = opened.withLock {
      opened -> (replaced: DispatchSource?, warns: Bool)? in
      let replaced = opened.conflicts[signal]?.source
      guard opened.signals.contains(signal), source == nil || source === replaced else {
        return nil
      }
      if kept != nil { clinux_signal_yield(signal.rawValue) }
      let handler = kept == nil ? handler : SignalConflict.handler(of: signal)
      opened.conflicts[signal] = owner.map {
        SignalConflict(handler: handler, source: kept, note: $0.note)
      }
      if opened.direct >= 0 { _ = opened.setDirect() }
      let isNew = opened.note(on: signal).map { opened.warned.insert($0).inserted }
      return (replaced, isNew == true)
    }
    guard let settled else { return }
    if settled.replaced !== kept { settled.replaced?.cancel() }
    if settled.warns, let owner { report(.fact(.warning(owner.note + owner.consequence))) }
    sendNote()
  }

  /// Sends the note for the operator. Two threads may change it at once: the last one sent is the note after both changes.
  func sendNote() {
    var sent: String?
    repeat {
      sent = opened.withLock { $0.conflictNote }
      report(.fact(.statusNote(.signals, sent)))
    } while sent != opened.withLock { $0.conflictNote }
  }
}

/// The owner of a signal's handler.
private struct HandlerOwner: Sendable {
  /// Dispatch installs its handler with the first `DispatchSource` for a signal, and leaves it there for good.
  private(set) var isDispatch = false
  /// Empty for a signal that is not mapped, which has no hook.
  private(set) var note = ""
  private(set) var consequence = ""

  /// `nil` where the subject alone has the signal.
  ///
  /// - Parameter descriptors: The signals that have a signalfd, as Dispatch makes one for each.
  init?(_ handler: UInt, of signal: UnixSignal, _ action: LifecycleRequest?, _ descriptors: UInt64)
  {
    func file(_ code: UInt) -> String? { clinux_file_of_code(code).map { String(cString: $0) } }
    let isOurs = handler == clinux_own_handler()
    if isOurs {
      isDispatch = signal.isIn(descriptors)
    } else if handler > 1, file(handler) == file(clinux_dispatch_code()) {
      // Others' handlers may be in the same file.
      isDispatch = file(handler) != file(clinux_own_handler()) || signal.isIn(descriptors)
    }
    if isOurs, !isDispatch { return nil }
    guard let action else { return }
    consequence =
      if case .describe = action { ": nothing is described." } else {
        ": \(action.hook) is not called."
      }
    let remedy = "signals[\(signal.expression)] = nil."
    if isDispatch {
      note = "\(signal) is also handled by a DispatchSource of this process"
      consequence =
        ", as ServiceGroup, Hummingbird's runService and Vapor's start create. Both receive it, and its sender is unknown"
        + " now. Remove it from one: gracefulShutdownSignals: [], or \(remedy)"
    } else if handler == 0 {
      note = "\(signal) has its default action since other code set SIG_DFL"
    } else if handler == 1 {
      note = "\(signal) is ignored since other code set SIG_IGN"
      if signal == .sigterm { consequence = ": systemctl stop will end in SIGKILL." }
    } else {
      let name = file(handler)?.split(separator: "/").last ?? "this process"
      note = "\(signal) is handled by other code, in \(name)"
      consequence += " Remove that handler, or \(remedy)"
    }
  }
}

extension UnixSignal {
  /// Whether it is in a set, in which bit 0 stands for signal 1.
  fileprivate func isIn(_ signals: UInt64) -> Bool { signals >> UInt64(rawValue - 1) & 1 != 0 }

  /// The signal as a Swift expression, for a subscript.
  var expression: String {
    let constants: [Self] = [.sighup, .sigint, .sigquit, .sigusr1, .sigusr2, .sigalrm, .sigterm]
    if constants.contains(self) { return ".\(description.lowercased())" }
    let offset = rawValue - clinux_sigrtmin()
    return offset >= 0 ? ".realTime(\(offset))!" : "UnixSignal(rawValue: \(description))!"
  }
}

extension LifecycleRequest {
  /// The last hook that is called for it.
  fileprivate var hook: String {
    switch self {
    case .pause: "didEnterBackground"
    case .resume: "willEnterForeground"
    case .sleep: "willSleep"
    case .wakeUp: "didWakeUp"
    case .post(let notification): "the hook of \(type(of: notification))"
    default: transition?.row.steps.last?.kind.map { "\($0)" } ?? "checkHealth"
    }
  }
}
