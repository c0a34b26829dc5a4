// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The observers that are not in the foreground although the daemon is: while there is one, the daemon is not ready.
struct Unentered: Sendable {
  /// The observers whose last WillEnterForeground did not complete, or was not called; sorted, as the others.
  private(set) var failed: [ObserverID] = []
  /// Work that was not begun because one of them has failed.
  private(set) var held: [ObserverID] = []
  /// Work that has begun and does not do its job: it comes back automatically, or with the next foreground. None of the
  /// others is in it.
  private(set) var absent: [ObserverID] = []
  /// Whether that has changed since the operator was last told.
  var hasNews = false
  /// The failed observer that is first in hook order: work that it does not hold back is not held back at all. `nil` where
  /// it is to be searched for.
  private var first: ObserverID?
  /// When the failed observers are notified again; the distant future while that would be of no use.
  private(set) var deadline = MonotonicTime.distantFuture
  /// The last pause before a retry; zero while there was none, and again when all have entered.
  private(set) var pause = Duration.zero
  /// Whether the log and the operator know.
  var isAnnounced = false
  /// Whether the transition that this input begins, or has begun, is a retry, whose problems were logged before.
  var isRetrying = false

  /// The observers that are to be notified again.
  var retried: [ObserverID] { failed + held }
  var count: Int { failed.count + held.count + absent.count }
  var isEmpty: Bool { count == 0 }

  mutating func add(_ id: ObserverID, isHeld: Bool = false) {
    let count = failed.count
    failed.set(id, !isHeld, by: <)
    held.set(id, isHeld, by: <)
    absent.set(id, false, by: <)
    // An observer that fails again changes nothing.
    if failed.count != count { first = nil }
  }

  /// Sets whether a work is absent. Returns whether that is news.
  mutating func set(_ id: ObserverID, isAbsent: Bool) -> Bool {
    let place = failed.partitioningIndex { $0 >= id }
    let hasFailed = place < failed.count && failed[place] == id
    return absent.set(id, isAbsent && !hasFailed, by: <)
  }

  /// Removes observers that have entered, are notified again, or were removed.
  mutating func remove(_ ids: [ObserverID]) {
    if retried.isEmpty { return }
    // From the end, where a removal moves few others.
    for id in ids.reversed() {
      if failed.set(id, false, by: <) || held.set(id, false, by: <) { hasNews = true }
      if first == id { first = nil }
    }
    if retried.isEmpty { (deadline, pause) = (.distantFuture, .zero) }
  }

  /// Returns the first that failed, in hook order.
  mutating func first(in members: borrowing LifecycleMembers) -> Member? {
    if let known = first.flatMap({ members[$0] }) { return known }
    var found: Member?
    for id in failed {
      if let member = members[id], found.map({ member.precedes($0) }) ?? true { found = member }
    }
    first = found?.id
    return found
  }

  static let firstPause = Duration.seconds(1)
  static let longestPause = Duration.seconds(60)

  /// Plans a retry, after the first pause and then after twice the last one, up to the longest.
  mutating func planRetry(at now: MonotonicTime) {
    guard deadline == .distantFuture else { return }
    pause = min(max(Self.firstPause, pause * 2), Self.longestPause)
    deadline = now.advanced(by: pause)
  }

  /// Ends the pause. The next transition is a retry if nothing else is under way.
  mutating func retry(isAlone: Bool) {
    deadline = .distantFuture
    isRetrying = isAlone
  }
}
