// SPDX-License-Identifier: Apache-2.0
import Testing

/// What systemd starts again.
@Suite("kills", .machines, .describesUnits) struct KilledDaemonTests {
  /// Started, so that its next life can be told from this one.
  private func started(
    _ machine: MachineTest, _ options: String = "", _ lines: String...
  ) async throws -> (Service, pid: Int) {
    let probe = try await machine.lifecycle(
      options, (["RestartSec=0"] + lines).joined(separator: "\n"))
    try await probe.start()
    return (probe, try await probe.mainPID)
  }

  @Test(arguments: Release.selected)
  func aKilledDaemonIsStartedAgainAndAStoppedOneIsNot(_ release: Release) async throws {
    try await release.test { machine in
      let (probe, pid) = try await started(machine, "", "Restart=always")
      // As an operator who has found the wrong number, or a script of the year before.
      try await machine.expect("sh", "-c", "kill \(pid)")
      try await probe.wait("NRestarts", is: "1")
      try await probe.wait("ActiveState", is: "active")
      #expect(try await probe.mainPID != pid)
      // In order, all the same.
      #expect(try await probe.lines("terminate done") == 1)
      #expect(try await probe.lines("exit 0") == 1)
      try await probe.stop()
      try await probe.wait("ActiveState", is: "inactive")
      #expect(try await probe.show("ExecMainStatus") == "0")
      #expect(try await probe.show("Job") == "")
      #expect(try await probe.lines("exit 0") == 2)
    }
  }

  @Test(arguments: Release.selected)
  func onFailureLeavesAKilledDaemonEnded(_ release: Release) async throws {
    try await release.test { machine in
      let (probe, pid) = try await started(machine, "", "Restart=on-failure")
      try await machine.expect("sh", "-c", "kill \(pid)")
      try await probe.wait("ActiveState", is: "inactive")
      #expect(try await probe.show("Job") == "")
      #expect(try await probe.show("NRestarts") == "0")
      #expect(try await probe.lines("exit 0") == 1)
    }
  }

  // MARK: Forgotten restarts

  /// 258 and later count from nought again; those before it take no notice.
  @Test(arguments: Release.selected)
  func systemdForgetsRestartsWhenAPartIsWellAgain(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      try await machine.expect("systemctl", "log-level", "debug")
      let (probe, pid) = try await started(machine, "--part=5", "Restart=on-failure")
      try await probe.waitForStatus { $0.contains("; part has failed once") }
      try await machine.expect("sh", "-c", "kill -KILL \(pid)")
      try await probe.waitForEntry { $0.message.contains("restart counter is at 1") }
      try await machine.waitForJournal("_PID=1", "UNIT=\(probe.name)") {
        $0.message.contains("Got notification message") && $0.message.contains("RESTART_RESET=1")
      }
      try await probe.wait("NRestarts", is: machine.systemd >= 258 ? "0" : "1")
      #expect(try await probe.show("ActiveState") == "active")
      try await probe.waitForStatus { !$0.contains("has failed") }
      try await probe.stopsWell()
    }
  }
}
