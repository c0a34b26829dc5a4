// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The state of a sleep of the machine, for which logind waits.
struct Sleep: Sendable {
  /// Whether a sleep was announced, and logind has not been told yet that the machine may sleep.
  private(set) var isAwaited = false
  /// The time at which logind stops waiting for an announced suspend. Used once, since the next suspend may not be
  /// delayed.
  private(set) var end: MonotonicTime?
  /// Set while a suspend is delivered that logind waits for.
  private(set) var budget: StopBudget?
  /// The observers for which a budget left no time: busy in the registry until that budget no longer applies. Empty
  /// once the termination has begun.
  private(set) var postponed: Set<ObserverID> = []

  mutating func announce() { isAwaited = true }
  mutating func delay(until end: MonotonicTime) { self.end = end }
  /// Forgets the delay when the machine is awake again, or did not sleep: the next suspend may not be delayed.
  mutating func forgetDelay() { end = nil }

  /// Begins a suspend; half of its time is for the save.
  mutating func suspendBegins(at now: MonotonicTime) {
    guard let end = end.take(), end > now else { return }
    budget = StopBudget(until: end, reserve: now.duration(to: end) / 2)
  }

  mutating func suspendEnded() { budget = nil }

  /// Returns true once for each announced sleep.
  mutating func takeAwaited() -> Bool {
    defer { isAwaited = false }
    return isAwaited
  }

  /// Postpones an observer. Returns false when it was postponed before.
  mutating func postpone(_ observer: ObserverID) -> Bool { postponed.insert(observer).inserted }
  mutating func forget(_ observer: ObserverID) { postponed.remove(observer) }

  mutating func takePostponed() -> Set<ObserverID> {
    defer { postponed = [] }
    return postponed
  }
}
