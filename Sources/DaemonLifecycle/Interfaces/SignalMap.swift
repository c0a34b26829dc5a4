// SPDX-License-Identifier: Apache-2.0
/// A map from signals to requests: a value to replace, to extend, or to empty (`[:]`).
///
/// ```swift
/// var signals = SignalMap.standard
/// signals[.sigusr1] = nil  // back to the system's own meaning
/// signals[.realTime(0)!] = .post(RotateLogs())
/// let lifecycle = LifecycleSubject(configuration: .init(signals: signals))
/// ```
///
/// SIGCONT can't be mapped, since systemd sends it along with every other signal; nor can signals that report a fault
/// (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS). The start throws an error for these.
///
/// Signals of several kinds that are pending together arrive in the order in which the kernel delivers them: by number
/// as a rule, not in the order in which they were sent.
public struct SignalMap: Sendable, ExpressibleByDictionaryLiteral {
  /// Sorted by signal number; there are few.
  private var entries: [Entry] = []
  private struct Entry {
    let signal: UnixSignal
    let request: LifecycleRequest
  }

  /// Makes a map of these signals and no others; of two entries for one signal, the last counts.
  public init(dictionaryLiteral elements: (UnixSignal, LifecycleRequest)...) {
    for (signal, request) in elements { self[signal] = request }
  }

  /// The default map: SIGUSR1 pauses, SIGUSR2 resumes, SIGHUP reloads, SIGTERM and SIGINT terminate.
  public static let standard: SignalMap = [
    .sigusr1: .pause, .sigusr2: .resume, .sighup: .reload,
    .sigterm: .terminate, .sigint: .terminate,
  ]

  /// The request of a signal; `nil` when it is not handled.
  public subscript(signal: UnixSignal) -> LifecycleRequest? {
    get { entries.first { $0.signal == signal }?.request }
    set {
      entries.removeAll { $0.signal == signal }
      guard let newValue else { return }
      let place = entries.firstIndex { $0.signal.rawValue > signal.rawValue } ?? entries.endIndex
      entries.insert(Entry(signal: signal, request: newValue), at: place)
    }
  }

  /// The signals that are handled, by number.
  public var signals: [UnixSignal] { entries.map { $0.signal } }

  /// The event of a signal; `nil` if the map does not have it. A SIGHUP because the terminal was closed terminates,
  /// whatever else SIGHUP means: the user who has started the daemon there is gone.
  package func event(of signal: UnixSignal, _ cause: LifecycleCause) -> LifecycleEvent? {
    self[signal].map { LifecycleEvent(cause.isHangUp ? .terminate : $0, cause: cause) }
  }

  func validate() throws(LifecycleError) {
    for signal in signals {
      if signal == .sigcont {
        throw .signalNotMappable(
          signal,
          reason: "systemd sends it along with every signal, so it has no meaning of its own")
      }
      if signal.isFault {
        throw .signalNotMappable(
          signal, reason: "it reports a fault that a handler can't put off")
      }
    }
  }
}
