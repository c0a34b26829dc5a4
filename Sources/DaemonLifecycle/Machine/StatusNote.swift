// SPDX-License-Identifier: Apache-2.0
/// The subject of a note for the operator, in the order of the status. There is at most one note of each at a time.
package enum StatusNote: Comparable, Sendable {
  /// The daemon's own status text.
  case daemon
  /// The result of the last reload.
  case reload
  /// State that could not be saved.
  case unsaved
  /// Observers that have not entered the foreground.
  case unentered
  /// Other hooks that did not complete.
  case problem
  /// A work, by its name and number, that has failed, has ended by itself, or has stalled.
  case work(String, UInt64)
  /// The reason why the daemon gives no sign of life.
  case health
  /// Suspending without a delay lock.
  case delayLock
  /// A watched unit that can't be followed.
  case watchedUnit
  /// An elector that fails.
  case elector
  /// Signals that other code of the process has taken.
  case signals

  /// Whether the log has a warning that says more, or nothing is wrong.
  var isOnlyForStatus: Bool {
    switch self {
    case .daemon, .elector, .signals, .work: true
    default: false
    }
  }
}
