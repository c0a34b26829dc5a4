// SPDX-License-Identifier: Apache-2.0
/// A request to a lifecycle: the meaning of a signal, a call such as `reload()`, or an event of the machine.
///
/// ```swift
/// var signals = SignalMap.standard
/// signals[.sigalrm] = .saveState
/// // In a test:
/// try await mock.send(.reload)
/// ```
///
/// Requests of one kind that wait together are merged; posts are delivered one by one. Minor versions may add cases.
#if hasAttribute(nonexhaustive)
  @nonexhaustive
#endif
public enum LifecycleRequest: Sendable {
  /// Add a reason for being in the background: the daemon stays there until the last reason is removed.
  case pause(for: BackgroundReason)
  /// Remove a reason for being in the background.
  case resume(for: BackgroundReason)
  /// Save state and go on.
  case saveState
  /// Save state, then reload the configuration.
  case reload
  /// Pause, save and prepare, since the machine is about to sleep.
  case sleep
  /// Go on, since the machine has woken up, or will not sleep after all.
  case wakeUp
  /// Free what can be freed, since memory is short.
  case pressure
  /// Check the observers' health, beside other deliveries.
  case checkHealth
  /// Log each running hook: its observer, its time so far, and its deadline. It changes nothing, and waits for nothing.
  case describe
  /// Deliver a custom notification. If a signal posts it, the cause names the signal and its sender.
  indirect case post(any CustomNotification)
  /// Terminate. A second such signal cancels the hooks that do not save, and a third ends the process; a signal that
  /// follows too soon does not count: see ``LifecycleConfiguration/escalationDelay``.
  case terminate

  /// Pause for the operator's reason, ``BackgroundReason/operator``.
  public static let pause = Self.pause(for: .operator)
  /// Remove the operator's reason for being in the background.
  public static let resume = Self.resume(for: .operator)
}

extension LifecycleRequest {
  /// The transition that delivers it; `nil` where that depends on the state in which its turn comes.
  var transition: LifecycleTransition? {
    switch self {
    case .saveState: .saveState
    case .reload: .reload
    case .pressure: .pressure
    case .post: .post
    case .terminate: .termination
    case .pause, .resume, .sleep, .wakeUp, .checkHealth, .describe: nil
    }
  }

  /// Whether it adds or removes a reason for being in the background.
  var concernsState: Bool {
    switch self {
    case .pause, .resume: true
    default: false
    }
  }

  /// Whether it is about the machine's sleep, or the end of that.
  var concernsSleep: Bool {
    switch self {
    case .sleep, .wakeUp: true
    default: false
    }
  }

  /// Whether two requests that wait together, and are no posts, become one.
  func merges(with other: LifecycleRequest) -> Bool {
    concernsSleep == other.concernsSleep && transition == other.transition
  }
}

/// A request and its cause.
package struct LifecycleEvent: Sendable {
  package let request: LifecycleRequest
  package let cause: LifecycleCause

  package init(_ request: LifecycleRequest, cause: LifecycleCause = LifecycleCause(.api)) {
    self.request = request
    self.cause = cause
  }
}
