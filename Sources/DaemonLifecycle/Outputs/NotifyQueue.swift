// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// What the service manager has not been told yet, the oldest first.
///
/// A message that says in what state the service is (READY, RELOADING, STOPPING) stays as it is, in its place, until it
/// is sent. Between two of these there is at most one other message: of a status, a ping and an extension only the
/// newest matters. So what waits for a manager that reads nothing does not grow with time.
struct NotifyQueue {
  private var messages: [[NotifyField]] = []

  var first: [NotifyField]? { messages.first }

  mutating func removeFirst() { messages.removeFirst() }

  mutating func append(_ message: [NotifyField]) {
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
  /// A newer one of the same kind says all that it says.
  fileprivate var isReplaceable: Bool { replaces(self) }

  fileprivate func replaces(_ older: NotifyField) -> Bool {
    switch (self, older) {
    case (.status, .status), (.watchdog, .watchdog), (.extendTimeout, .extendTimeout),
      (.exitStatus, .exitStatus):
      true
    default: false
    }
  }
}
