// SPDX-License-Identifier: Apache-2.0
/// A request that changes nothing about where the daemon is: it delivers notifications.
///
/// As a signal's meaning `.errand(.reload)`, or shorter, `.reload`:
///
/// ```swift
/// var signals = SignalMap.standard
/// signals[.sigalrm] = .errand(.saveState)
/// ```
public enum LifecycleErrand: Sendable, CaseIterable {
  /// Save state and go on.
  case saveState
  /// Save state, then reload.
  case reload

  var row: Row {
    switch self {
    case .saveState:
      Row(
        [.shouldSaveState], event: "save", gerund: "saving", done: "Saved state",
        messageID: "c9d04c87a39d4f96abe4d88a6aec0f07")
    case .reload:
      Row(
        [.shouldSaveState, .shouldReload], event: "reload", gerund: "reloading", done: "Reloaded",
        rejected: "Reload rejected", messageID: "2800c7fcc3ec4765aa25ab97ee303c75")
    }
  }
}

extension LifecycleErrand {
  /// What there is to know about an errand.
  struct Row: Sendable {
    /// What is delivered, in order.
    let steps: [LifecycleStep]
    /// What `journalctl LIFECYCLE_EVENT=…` finds it by.
    let event: String
    /// For a sentence: "reloading, 3 of 5 done".
    let gerund: String
    /// Past tense, for a log.
    let done: String
    /// The same when a hook has failed; `nil`: it is done all the same.
    let rejected: String?
    /// The journal's MESSAGE_ID, from `journalctl --new-id128`. It never changes.
    let messageID: StaticString

    fileprivate init(
      _ steps: [NotificationKind], event: String, gerund: String, done: String,
      rejected: String? = nil, messageID: StaticString
    ) {
      self.steps = steps.map { .kind($0) }
      self.event = event
      self.gerund = gerund
      self.done = done
      self.rejected = rejected
      self.messageID = messageID
    }
  }
}
