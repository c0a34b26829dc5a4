// SPDX-License-Identifier: Apache-2.0
/// The daemon's state and its reasons for being in the background.
package struct LifecycleSnapshot: Sendable, Equatable {
  let state: LifecycleState
  /// The names of the first reasons, sorted, and the number of the others.
  let reasons: [String]
  /// The observers that are not in this foreground, and the rounds that wait for them.
  var unentered: [String] = []
}

/// The progress of a transition.
package struct LifecycleProgress: Sendable {
  let transition: LifecycleTransition
  let done: Int
  let total: Int
  /// The observers whose hooks run.
  let waitingFor: [ObserverName]
  let elapsed: Duration
  /// Whether a resume, after it, brings the daemon back to the foreground.
  var isRevoked = false

  /// The progress in words: `stopping: 3 of 5 done, waiting for Database, 2.1 s`.
  var description: String {
    var names = waitingFor.prefix(3).map(\.description).joined(separator: ", ")
    if waitingFor.count > 3 { names += " and \(waitingFor.count - 3) more" }
    let waiting = names.isEmpty ? "" : ", waiting for \(names)"
    return "\(transition.row.gerund): \(done) of \(total) done\(waiting), \(elapsed.forReading)"
      + (isRevoked ? "; then a resume" : "")
  }
}
