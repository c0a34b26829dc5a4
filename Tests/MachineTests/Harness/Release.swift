// SPDX-License-Identifier: Apache-2.0
import TestSupport
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

  static let selection = Selection<Release>("MACHINE_SUITES", means: "machines")
  static var selected: [Release] { selection.selected }

  /// Those of them that have this version of systemd or a later one.
  static func since(_ version: Int) -> [Release] { selected.filter { $0.systemd >= version } }
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
  #expect(Release.selection.refusal == nil)
}
