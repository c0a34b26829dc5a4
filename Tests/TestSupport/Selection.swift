// SPDX-License-Identifier: Apache-2.0
import Foundation

/// What an environment variable selects to run tests on, such as `MACHINE_SUITES=trixie,forky`, or `all`.
package struct Selection<Choice: CaseIterable & RawRepresentable<String> & Sendable>: Sendable {
  /// In the order of the variable; empty if it is not set.
  package let selected: [Choice]
  /// Why the tests can't do what the variable requests; `nil` if they can, or if it requests nothing.
  package let refusal: String?

  /// - Parameters:
  ///   - variable: The environment variable.
  ///   - means: What the tests need root for, in the plural.
  package init(_ variable: String, means: String) {
    let names = (ProcessInfo.processInfo.environment[variable] ?? "")
      .split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    selected =
      names == ["all"] ? Array(Choice.allCases) : names.compactMap { Choice(rawValue: $0) }
    if let name = names.first(where: { Choice(rawValue: $0) == nil }), names != ["all"] {
      let known = Choice.allCases.map(\.rawValue).joined(separator: ", ")
      refusal = "\(variable) names \"\(name)\"; there are all, or \(known)."
    } else if !names.isEmpty && geteuid() != 0 {
      refusal = "\(variable) is set, but \(means) need root."
    } else {
      refusal = nil
    }
  }
}
