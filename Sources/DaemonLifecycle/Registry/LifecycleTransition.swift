// SPDX-License-Identifier: Apache-2.0
/// The kind of a transition, which is a sequence of steps: one request, or the termination.
package enum LifecycleTransition: Int, CaseIterable, Sendable {
  case launch, foreground, background, sleep, wakeUp, saveState, reload, pressure, post
  /// Members that were added late, or were busy, receive the steps that the others have received.
  case catchUp
  case termination

  private func makeRow() -> Row {
    switch self {
    case .launch:
      Row(
        [.kind(.didFinishLaunching), .workBegins, .kind(.willEnterForeground)], event: "launch",
        gerund: "launching", done: "Started", isNotice: true,
        messageID: "7661d9a0b7f44df78cf89eca95be801a")
    case .foreground:
      Row(
        [.kind(.willEnterForeground)], event: "foreground", gerund: "entering the foreground",
        done: "Entered the foreground", isNotice: true,
        messageID: "7a23e78e7d1e43de9af80e749ceb84c1")
    case .background:
      Row(
        [.kind(.didEnterBackground), .kind(.shouldSaveState)], event: "background",
        gerund: "entering the background", done: "Entered the background", isNotice: true,
        messageID: "b9ab8dc464b24c518935721cb1171b33")
    case .sleep:
      Row(
        [.kind(.didEnterBackground), .kind(.shouldSaveState), .kind(.willSleep)],
        event: "sleep", gerund: "preparing for sleep", done: "Ready for the machine's sleep",
        messageID: "f556588cc7c245f892b8c54198eab283")
    case .wakeUp:
      Row(
        [.kind(.didWakeUp)], event: "wake-up", gerund: "waking up",
        done: "Woken up after the machine's sleep", messageID: "388fcb70bd6e41f7bee3cf21bfab7bf2")
    case .saveState:
      Row(
        [.kind(.shouldSaveState)], event: "save", gerund: "saving", done: "Saved state",
        messageID: "c9d04c87a39d4f96abe4d88a6aec0f07")
    case .reload:
      Row(
        [.kind(.shouldSaveState), .kind(.shouldReload)], event: "reload", gerund: "reloading",
        done: "Reloaded", rejected: "Reload rejected",
        messageID: "2800c7fcc3ec4765aa25ab97ee303c75")
    case .pressure:
      Row(
        [.kind(.didReceivePressure)], event: "pressure", gerund: "relieving pressure",
        done: "Notified of pressure",
        messageID: "da8a1d4827a24e28ad4c8e19906c1dc3")
    case .post: Row([], event: "post", gerund: "delivering", done: "Delivered")
    case .catchUp:
      Row(
        [], event: "late-observer", gerund: "notifying late observers",
        done: "Notified late observers")
    case .termination:
      Row(
        [.workEnds, .kind(.shouldSaveState), .kind(.willTerminate)], event: "terminate",
        gerund: "stopping", done: "Terminated", isNotice: true,
        messageID: "5abc37cbba064215b4294a5299559cdc")
    }
  }

  /// The steps of a transition, and its words.
  final class Row: Sendable {
    /// The steps, in order; none where they depend on the request.
    let steps: [LifecycleStep]
    /// The name in the journal: `journalctl LIFECYCLE_EVENT=…`.
    let event: String
    /// The gerund in sentences such as "reloading, 3 of 5 done".
    let gerund: String
    /// The sentence in a log for its end.
    let done: String
    /// The sentence in a log when a hook has failed and nothing has changed; `nil`: it counts as done.
    let rejected: String?
    /// Whether an operator should notice it: the priority in the journal is `notice`, otherwise `info`.
    let isNotice: Bool
    /// The journal's MESSAGE_ID, made with `journalctl --new-id128`. It never changes. `nil`: it is not logged.
    let messageID: StaticString?

    fileprivate init(
      _ steps: [LifecycleStep], event: String, gerund: String, done: String,
      rejected: String? = nil, isNotice: Bool = false, messageID: StaticString? = nil
    ) {
      self.steps = steps
      self.event = event
      self.gerund = gerund
      self.done = done
      self.rejected = rejected
      self.isNotice = isNotice
      self.messageID = messageID
    }
  }

  /// The rows, made once since steps are read often.
  private static let rows = allCases.map { $0.makeRow() }

  var row: Row { Self.rows[rawValue] }
}
