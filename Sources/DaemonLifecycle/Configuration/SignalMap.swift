// SPDX-License-Identifier: Apache-2.0
/// The action that a signal requests.
public enum SignalAction: Sendable {
  /// Enter the background, for the operator's reason: the daemon stays there until `.enterForeground`.
  case enterBackground
  /// Remove the operator's reason for being in the background.
  case enterForeground
  /// Deliver notifications without a change of state.
  case errand(LifecycleErrand)
  /// Terminate. The second such signal cancels the hooks that do not save, the third ends the process at once: see
  /// ``LifecycleConfiguration/escalationDelay``.
  case terminate
  /// Post a custom notification; its cause names the signal and its sender.
  case post(any CustomNotification)

  /// Save state, then reload the configuration.
  public static let reload = Self.errand(.reload)
  /// Save state and go on.
  public static let saveState = Self.errand(.saveState)
}

/// A map from signals to actions: a value to replace, extend or empty.
///
/// ```swift
/// var signals = SignalMap.standard
/// signals[.sigusr1] = nil                            // back to the system's own meaning
/// signals[.realTime(0)!] = .post(RotateLogs())
/// let lifecycle = LifecycleSubject(configuration: .init(signals: signals))
/// ```
///
/// SIGCONT can't be mapped, since systemd sends it along with every other signal; nor can signals that report a fault
/// (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS). `start()` throws an error for these.
///
/// Signals of several kinds that are pending together arrive in the order in which the kernel delivers them: by number
/// as a rule, not in the order in which they were sent.
public struct SignalMap: Sendable, ExpressibleByDictionaryLiteral {
  /// By the numbers of the signals, of which there are few.
  private var entries: [Entry] = []
  private struct Entry {
    let signal: UnixSignal
    let action: SignalAction
  }

  /// Makes a map of these signals and no others; of two entries for one signal, the last counts.
  public init(dictionaryLiteral elements: (UnixSignal, SignalAction)...) {
    for (signal, action) in elements { self[signal] = action }
  }

  /// The default map: SIGUSR1 pauses, SIGUSR2 resumes, SIGHUP reloads, SIGTERM and SIGINT terminate.
  public static let standard: SignalMap = [
    .sigusr1: .enterBackground, .sigusr2: .enterForeground, .sighup: .reload,
    .sigterm: .terminate, .sigint: .terminate,
  ]

  /// The empty map: each signal keeps its disposition.
  public static let none: SignalMap = [:]

  /// The action of a signal; `nil` when it is not handled.
  public subscript(signal: UnixSignal) -> SignalAction? {
    get { entries.first { $0.signal == signal }?.action }
    set {
      entries.removeAll { $0.signal == signal }
      guard let newValue else { return }
      let place = entries.firstIndex { $0.signal.rawValue > signal.rawValue } ?? entries.endIndex
      entries.insert(Entry(signal: signal, action: newValue), at: place)
    }
  }

  /// The action of a signal by its number, as in `signals[SIGUSR1] = .saveState`; `nil` when it is not handled.
  ///
  /// - Precondition: To set one, the number is that of a signal that can be caught.
  public subscript(number: Int32) -> SignalAction? {
    get { UnixSignal(rawValue: number).flatMap { self[$0] } }
    set {
      guard let signal = UnixSignal(rawValue: number) else {
        preconditionFailure("\(number) is no signal that can be caught.")
      }
      self[signal] = newValue
    }
  }

  var signals: [UnixSignal] { entries.map { $0.signal } }

  func validate() throws(LifecycleError) {
    for signal in signals {
      if signal == .sigcont {
        throw .signalNotMappable(
          signal, reason: "systemd sends it along with every signal, so it says nothing")
      }
      if signal.isFault {
        throw .signalNotMappable(
          signal, reason: "it reports a fault that a handler can't put off")
      }
    }
  }
}

extension SignalAction {
  func event(cause: LifecycleCause) -> LifecycleEvent {
    switch self {
    case .enterBackground: .init(.enterBackground(.operator), cause: cause)
    case .enterForeground: .init(.enterForeground(.operator), cause: cause)
    case .errand(let errand): .init(.errand(errand), cause: cause)
    case .terminate: .init(.terminate, cause: cause)
    case .post(let notification): .init(.post(notification), cause: cause)
    }
  }
}
