// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The messages that were not sent to the service manager yet, the oldest first.
///
/// A message with a state of the service (READY, RELOADING, STOPPING) keeps its place until it is sent. Between two of
/// these there is at most one other message, since only the newest status, ping and extension matter. Of several unsent
/// reloads only the newest is kept. So the queue does not grow while the manager reads nothing.
struct NotifyQueue {
  private var messages: [[NotifyField]] = []

  var first: [NotifyField]? { messages.first }

  mutating func removeFirst() { messages.removeFirst() }

  mutating func append(_ message: [NotifyField]) {
    if message.contains(where: \.isReload),
      let last = messages.lastIndex(where: { $0.contains(where: \.isReload) })
    {
      let others = messages[last...].joined().filter(\.isReplaceable)
      messages.removeSubrange(last...)
      for field in others { append([field]) }
    }
    guard let last = messages.last, last.allSatisfy(\.isReplaceable),
      message.allSatisfy(\.isReplaceable)
    else {
      messages.append(message)
      return
    }
    let kept = last.filter { old in !message.contains { $0.replaces(old) } }
    messages[messages.count - 1] = kept + message
  }
}

extension NotifyField {
  fileprivate var isReload: Bool { if case .reloading = self { true } else { false } }

  /// Whether a newer message of the same kind replaces it.
  fileprivate var isReplaceable: Bool { replaces(self) }

  fileprivate func replaces(_ older: NotifyField) -> Bool {
    switch (self, older) {
    case (.status, .status), (.watchdog, .watchdog), (.extendTimeout, .extendTimeout),
      (.exitStatus, .exitStatus):
      true
    case (.custom(let name, _), .custom(let older, _)): name == older
    default: false
    }
  }
}
