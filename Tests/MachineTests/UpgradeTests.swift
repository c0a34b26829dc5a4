// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

/// From a release to this and back, again and again, under the units of today. `.ci/prove upgrade` builds the release.
@Suite(
  "upgrades", .machines, .describesUnits,
  .enabled(if: exists(built("echod-before")) && exists(built("pollerd-before"))))
struct UpgradeTests {
  /// The program of a service becomes that of before, or that of now.
  private static let programs = ["-before", ""]

  private func link(_ name: String, _ program: String) -> String {
    "ln -sfn /opt/machine/bin/\(name)\(program) /usr/local/bin/\(name)"
  }

  /// Connections, half lines and unsent answers are handed over in both directions.
  @Test(arguments: Release.since(254))
  func connectionsLast(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let echod = try await machine.echod()
      let steps = (1...5).flatMap { _ in
        Self.programs.map { program in
          "--do=\(link("echod", program)) && systemctl restart \(echod.service.name)"
        }
      }
      let counts = try await machine.load(echod, ["--clients=100", "--connectors=4"] + steps)
      #expect(counts["refused"] == 0 && counts["dropped"] == 0)
      #expect(counts["bad"] == 0 && counts["unanswered"] == 0 && counts["failed"] == 0)
      #expect(counts["commands"] == 10 && counts["sent"] == counts["received"])
      let handed = try await echod.service.journal().filter { $0.message.hasPrefix("handed over ") }
      #expect(handed.count == 10)
    }
  }

  /// The state of each is the other's.
  @Test(arguments: Release.selected)
  func countingGoesOn(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let pollerd = try await machine.pollerd(config: "interval = 0.02")
      try await pollerd.start()
      try await pollerd.waitForMessage("poll 3 ")
      for program in Self.programs + Self.programs {
        try await machine.expect("sh", "-c", link("pollerd", program))
        try await pollerd.restart()
      }
      try await pollerd.stop()
      #expect(try await pollerd.show("Result") == "success")
      let polls = try await pollerd.journal().filter { $0.message.hasPrefix("poll ") }
      let numbers = polls.compactMap { Int($0.message.split(separator: " ")[1]) }
      #expect(numbers.count > 6 && numbers == Array(1...numbers.count))
    }
  }
}
