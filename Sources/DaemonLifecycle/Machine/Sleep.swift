// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// What logind waits for when the machine is about to sleep.
struct Sleep: Sendable {
  /// A sleep was announced, and nobody has been notified yet that the machine may sleep.
  private(set) var isAwaited = false
  /// When logind stops waiting for a suspend that has been announced. Used once: the next may be one that nobody
  /// delays.
  private(set) var end: MonotonicTime?
  /// Set while a suspend is delivered that logind waits for.
  private(set) var budget: StopBudget?
  /// Observers for whom a budget left no time: busy in the registry until that budget no longer counts. Empty once the
  /// termination has begun.
  private(set) var postponed: Set<ObserverID> = []

  mutating func announce() { isAwaited = true }
  mutating func delay(until end: MonotonicTime) { self.end = end }
  /// The machine is awake again, or never slept: the next suspend may be one that nobody delays.
  mutating func forgetDelay() { end = nil }

  /// Half of the time is for the save.
  mutating func suspendBegins(at now: MonotonicTime) {
    guard let end = end.take(), end > now else { return }
    budget = StopBudget(until: end, reserve: now.duration(to: end) / 2)
  }

  mutating func suspendEnded() { budget = nil }

  /// True once for each announced sleep.
  mutating func takeAwaited() -> Bool {
    defer { isAwaited = false }
    return isAwaited
  }

  /// False when the observer was postponed before.
  mutating func postpone(_ observer: ObserverID) -> Bool { postponed.insert(observer).inserted }
  mutating func forget(_ observer: ObserverID) { postponed.remove(observer) }

  mutating func takePostponed() -> Set<ObserverID> {
    defer { postponed = [] }
    return postponed
  }
}
