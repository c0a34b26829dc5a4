// SPDX-License-Identifier: Apache-2.0
/// What a note for the operator is about: each kind has at most one at a time.
enum StatusNote: Int, Sendable, Comparable {
  /// What the daemon says of itself.
  case daemon
  /// The verdict on the last reload.
  case reload
  /// Hooks that did not complete.
  case problem
  /// Why the watchdog is not pinged.
  case health
  /// Suspending without a delay lock.
  case delayLock
  /// A shutdown without a delay lock.
  case shutdownLock
  /// A watched unit or session that can't be followed.
  case watched

  static func < (a: StatusNote, b: StatusNote) -> Bool { a.rawValue < b.rawValue }
}
