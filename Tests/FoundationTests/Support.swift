// SPDX-License-Identifier: Apache-2.0
import Foundation

extension NotificationCenter {
  /// Observes by name on the poster's thread, until `remove` is called.
  func note(
    _ name: Notification.Name?, _ body: @escaping @Sendable (Notification) -> Void
  ) -> @Sendable () -> Void {
    // A token that is only handed back.
    nonisolated(unsafe) let token = addObserver(
      forName: name, object: nil, queue: nil, using: body)
    return { self.removeObserver(token) }
  }
}

/// The name of the calling thread.
func threadName() -> String {
  let name = try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)
  return name?.trimmingCharacters(in: .newlines) ?? "?"
}
