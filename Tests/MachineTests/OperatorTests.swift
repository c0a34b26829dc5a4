// SPDX-License-Identifier: Apache-2.0
import Testing

/// What an operator does by hand, and reads.
@Suite("operator", .machines, .describesUnits) struct OperatorTests {
  @Test(arguments: Release.selected)
  func theStatusNamesWhoPaused(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle()
      try await probe.start()
      try await probe.kill("USR1")
      let paused = try await probe.waitForStatus { $0.hasPrefix("background, operator, since 20") }
      #expect(paused.hasSuffix(" (SIGUSR1 from pid 1 uid 0)"))
      try await probe.kill("USR2")
      let resumed = try await probe.waitForStatus { $0.hasPrefix("foreground since 20") }
      #expect(resumed.hasSuffix(" (SIGUSR2 from pid 1 uid 0)"))
      #expect(try await probe.show("ActiveState") == "active")
      #expect(try await machine.expect("systemctl", "status", probe.name).contains(resumed))
    }
  }

  /// 1 launch, 2 foreground, 4 background, 8 save, 16 reload, 32 terminate.
  static let sum = (1 + 2) + (8 + 16) + (4 + 8) + 2 + (4 + 8 + 32)

  @Test(arguments: Release.selected)
  func eachHookCountsOnce(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle("--sum", "SuccessExitStatus=\(Self.sum)")
      try await probe.start()
      try await probe.reload()
      try await probe.waitForTransition("reload")
      try await probe.kill("USR1")
      try await probe.waitForTransition("background")
      try await probe.kill("USR2")
      try await probe.waitForTransition("foreground")
      try await probe.stopsWell()
      #expect(try await probe.show("ExecMainStatus") == "85")
    }
  }
}
