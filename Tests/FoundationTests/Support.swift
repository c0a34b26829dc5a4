// SPDX-License-Identifier: Apache-2.0
import Foundation

extension NotificationCenter {
  /// Observes by name on the poster's thread, for as long as the centre is there.
  func note(_ name: Notification.Name?, _ body: @escaping @Sendable (Notification) -> Void) {
    _ = addObserver(forName: name, object: nil, queue: nil, using: body)
  }
}

/// The name of the calling thread.
func threadName() -> String {
  let name = try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)
  return name?.trimmingCharacters(in: .newlines) ?? "?"
}
