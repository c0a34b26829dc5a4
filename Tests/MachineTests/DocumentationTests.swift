// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import Testing

/// The shell blocks of the articles, as they stand there, with pollerd as `mydaemon`.
@Suite("articles", .machines, .describesUnits) struct DocumentationTests {
  @Test(arguments: Release.selected)
  func everyBlockRuns(_ release: Release) async throws {
    try await release.test { machine in
      let systemd = try Self.blocks("RunningUnderSystemd")
      let reloading = try Self.blocks("ReloadingConfiguration")
      let daemon = try await Self.installUnit(of: systemd, before253: reloading, machine)
      try await machine.expect(
        "sh", "-euc",
        "mkdir -p /root/mydaemon/.build/release; cp /opt/machine/bin/pollerd /root/mydaemon/.build/release/mydaemon"
      )
      let articles = try systemd + Self.blocks("PausingAPoller") + Self.blocks("Troubleshooting")
      for block in articles where block.language == "sh" && !block.isRunElsewhere {
        try await machine.operate(block, daemon, in: "/root/mydaemon")
      }
      try await machine.expect(
        "sh", "-euc",
        "systemctl disable --now mydaemon; rm -rf /root/mydaemon /usr/local/bin/mydaemon /etc/sysusers.d/mydaemon.conf"
      )
    }
  }

  private static func blocks(_ article: String) throws -> [GuideBlock] {
    try GuideBlock.all(of: "Sources/DaemonLifecycle/DaemonLifecycle.docc/\(article).md")
  }

  /// The article's unit, and before systemd 253 what it says to write instead.
  private static func installUnit(
    of blocks: [GuideBlock], before253 others: [GuideBlock], _ machine: MachineTest
  ) async throws -> Service {
    let unit = try #require(blocks.first { $0.contains("ExecStart=/usr/local/bin/mydaemon") })
    let older = try #require(others.first { $0.contains("Type=notify\n") })
    return try await machine.install(
      "mydaemon.service", unit.text, dropIns: machine.systemd < 253 ? [older.text] : [])
  }
}
