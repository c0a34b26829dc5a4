import Foundation
import Synchronization
import Testing

/// What observers on any thread have noted, in order.
final class Notes<Element: Sendable>: Sendable {
  private let elements = Mutex<[Element]>([])
  var all: [Element] { elements.withLock { $0 } }
  func add(_ element: Element) { elements.withLock { $0.append(element) } }
}

/// Waits for a fact, and fails when it does not come.
///
/// For long: typed messages come through Swift's cooperative pool, which the other tests of a whole run keep busy for
/// half a minute, and for a whole one on a busy machine.
nonisolated(nonsending) func eventually(
  _ fact: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation
) async throws {
  let deadline = ContinuousClock.now.advanced(by: .seconds(180))
  while !fact() {
    guard ContinuousClock.now < deadline else {
      Issue.record("It has not happened.", sourceLocation: sourceLocation)
      return
    }
    try await Task.sleep(for: .milliseconds(1))
  }
}

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
