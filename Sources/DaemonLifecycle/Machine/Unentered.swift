// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// Who is not in the foreground although the daemon is: as long as there is one, it is not ready.
struct Unentered: Sendable {
  /// The observers whose last WillEnterForeground did not complete, or was not called.
  private(set) var failed: [ObserverID] = []
  /// The rounds of work that were not begun because of one of them.
  private(set) var held: [ObserverID] = []
  /// When those that failed are notified again; the distant future while that would be of no use.
  private(set) var deadline = MonotonicTime.distantFuture
  /// The last pause before a retry; zero while there was none.
  private(set) var pause = Duration.zero
  /// Whether the log and the operator know.
  var isAnnounced = false
  /// Whether the notification under way is a retry, of which the log knows the problems.
  var isRetrying = false

  var all: [ObserverID] { failed + held }
  var isEmpty: Bool { failed.isEmpty && held.isEmpty }

  mutating func add(_ id: ObserverID, isHeld: Bool = false) {
    remove(id)
    if isHeld { held.append(id) } else { failed.append(id) }
  }

  mutating func remove(_ id: ObserverID) {
    if !isEmpty { remove { $0 == id } }
  }

  mutating func remove(_ ids: [ObserverID]) {
    if isEmpty { return }
    let ids = Set(ids)
    remove { ids.contains($0) }
  }

  private mutating func remove(where isRemoved: (ObserverID) -> Bool) {
    failed.removeAll(where: isRemoved)
    held.removeAll(where: isRemoved)
    if isEmpty { (deadline, pause) = (.distantFuture, .zero) }
  }

  /// Plans a retry, after 1 s the first time and after twice the last pause later, a minute at most.
  mutating func planRetry(at now: MonotonicTime) {
    guard deadline == .distantFuture else { return }
    pause = min(max(.seconds(1), pause * 2), .seconds(60))
    deadline = now.advanced(by: pause)
  }

  mutating func retry() {
    deadline = .distantFuture
    isRetrying = true
  }
}
