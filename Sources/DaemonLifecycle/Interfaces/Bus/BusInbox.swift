// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The inputs from the bus that the core has not taken yet.
final class BusInbox {
  private var inputs: [SourceInput] = []
  /// The warnings that were not taken yet: what is unavailable, and the reason.
  private var warnings: [(subject: String, reason: String)] = []
  /// The reason in the last warning about each subject, so that it is logged once.
  private var logged: [String: String] = [:]
  /// The problems of watched units, by their names.
  private var problems: [String: String] = [:]

  func put(_ input: SourceInput) { inputs.append(input) }

  func put(_ kind: LifecycleRequest, _ fact: String) {
    inputs.append(.event(LifecycleEvent(kind, cause: LifecycleCause(.bus(fact)))))
  }

  /// Adds a warning; `subject` is what is unavailable, as in "the machine's sleep".
  func warn(_ error: BusError, without subject: String) {
    let reason = error.description
    if logged.updateValue(reason, forKey: subject) != reason { warnings.append((subject, reason)) }
  }

  /// Notes that a subject is available: its next failure is reported again, whatever the reason.
  func settle(_ subject: String) { logged[subject] = nil }

  /// Notes the problem of a watched unit, or that there is none.
  func setProblem(_ problem: String?, of unit: String) {
    if problems[unit] == problem { return }
    problems[unit] = problem
    let all = problems.keys.sorted().compactMap { problems[$0] }
    let note = all.isEmpty ? nil : "not watched: " + all.joined(separator: ", ")
    inputs.append(.fact(.statusNote(.watchedUnit, note)))
  }

  func take() -> [SourceInput] {
    defer { (inputs, warnings) = ([], []) }
    return inputs + lines.map { .fact(.warning($0)) }
  }

  /// Subjects with the same reason share a line.
  private var lines: [String] {
    let subjects = Dictionary(grouping: warnings, by: \.reason)
    return subjects.keys.sorted().map { reason in
      let subjects = (subjects[reason] ?? []).map(\.subject).sorted().joined(separator: ", ")
      // A service's own text may be no sentence.
      return
        "\(reason)\(reason.hasSuffix(".") ? "" : ".") The daemon continues without: \(subjects)."
    }
  }
}
