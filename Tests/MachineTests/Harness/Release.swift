// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

/// A Debian release, and by it a version of systemd, that tests run on.
enum Release: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case bookworm
  case trixie
  case forky

  /// The version of systemd that it has; a test checks it against what the machine says.
  var systemd: Int {
    switch self {
    case .bookworm: 252
    case .trixie: 257
    case .forky: 262
    }
  }

  var testDescription: String { "\(rawValue), systemd \(systemd)" }

  /// Those that the environment variable MACHINE_SUITES names; what it misspells is an error in `refusal`.
  static let selected: [Release] = names.compactMap { Release(rawValue: $0) }

  /// Those of them that have this version of systemd or a later one.
  static func since(_ version: Int) -> [Release] { selected.filter { $0.systemd >= version } }

  private static let names = (ProcessInfo.processInfo.environment["MACHINE_SUITES"] ?? "")
    .split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }

  /// Why the environment's request can't be granted; `nil` if it can, or if there is none.
  static var refusal: String? {
    if let name = names.first(where: { Release(rawValue: $0) == nil }) {
      let known = allCases.map(\.rawValue).joined(separator: ", ")
      return "MACHINE_SUITES names \"\(name)\"; there are \(known)."
    }
    return names.isEmpty || geteuid() == 0 ? nil : "MACHINE_SUITES is set, but machines need root."
  }
}

extension Trait where Self == ConditionTrait {
  /// Skips the tests, and says why, unless machines are wanted.
  static var machines: Self {
    .enabled(
      if: !Release.selected.isEmpty,
      """
      These tests boot a real systemd. They need root, and are run by \
      `MACHINE_SUITES=trixie swift test --filter MachineTests` (or bookworm, forky, or a comma-separated \
      list).
      """)
  }
}

/// Not skipped: a typing error in CI must not look like success.
@Test func theWantedMachinesExist() {
  #expect(Release.refusal == nil)
}
