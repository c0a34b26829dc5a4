// SPDX-License-Identifier: Apache-2.0
/// A request that delivers notifications without a change of state.
///
/// A signal map contains it as `.errand(.reload)` or, for short, as `.reload`:
///
/// ```swift
/// var signals = SignalMap.standard
/// signals[.sigalrm] = .errand(.saveState)
/// ```
public enum LifecycleErrand: Sendable, CaseIterable {
  /// Save state.
  case saveState
  /// Save state, then reload the configuration.
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
  /// The properties of an errand.
  struct Row: Sendable {
    /// The steps to deliver, in order.
    let steps: [LifecycleStep]
    /// The name in the journal: `journalctl LIFECYCLE_EVENT=…`.
    let event: String
    /// The gerund in sentences such as "reloading, 3 of 5 done".
    let gerund: String
    /// The sentence in a log for its success.
    let done: String
    /// The sentence in a log when a hook has failed; `nil`: the errand counts as done.
    let rejected: String?
    /// The journal's MESSAGE_ID, made with `journalctl --new-id128`. It never changes.
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
