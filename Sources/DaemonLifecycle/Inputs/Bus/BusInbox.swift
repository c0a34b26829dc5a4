// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The inputs from the bus that the core has not taken yet.
final class BusInbox {
  /// What is unavailable, and the reason.
  private typealias Lack = (subject: String, reason: String)

  private var inputs: [LifecycleMachine.Input] = []
  /// The warnings that were not taken yet.
  private var warnings: [Lack] = []
  /// The last warning about each subject, so that it is logged once.
  private var logged: [Lack] = []
  /// The problems of watched units, by their names.
  private var problems: [String: String] = [:]

  func put(_ input: LifecycleMachine.Input) { inputs.append(input) }

  func put(_ kind: LifecycleRequest, _ fact: String) {
    inputs.append(.event(LifecycleEvent(kind, cause: LifecycleCause(.bus(fact)))))
  }

  /// Adds a warning; `subject` is what is unavailable, as in "the machine's sleep".
  func warn(_ error: BusError, without subject: String) {
    let lack = (subject, error.description)
    guard !logged.contains(where: { $0 == lack }) else { return }
    settle(subject)
    logged.append(lack)
    warnings.append(lack)
  }

  /// Notes that a subject is available: its next failure is reported again, whatever the reason.
  func settle(_ subject: String) { logged.removeAll { $0.subject == subject } }

  /// Notes the problem of a watched unit, or that there is none.
  func setProblem(_ problem: String?, of unit: String) {
    if problems[unit] == problem { return }
    problems[unit] = problem
    let all = problems.sorted { $0.key < $1.key }.map(\.value)
    let note = all.isEmpty ? nil : "not watched: " + all.joined(separator: ", ")
    inputs.append(.statusNote(.watched, note))
  }

  func take() -> [LifecycleMachine.Input] {
    defer { (inputs, warnings) = ([], []) }
    return inputs + lines.map { .warning($0) }
  }

  /// What lacks the same bus makes one line.
  private var lines: [String] {
    var reasons: [String] = []
    for lack in warnings where !reasons.contains(lack.reason) { reasons.append(lack.reason) }
    return reasons.map { reason in
      let subjects = warnings.filter { $0.reason == reason }.map(\.subject).sorted()
      // A service's own text may be no sentence.
      return "\(reason)\(reason.hasSuffix(".") ? "" : ".") The daemon goes on without: "
        + "\(subjects.joined(separator: ", "))."
    }
  }
}
