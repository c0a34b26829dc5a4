// SPDX-License-Identifier: Apache-2.0
import Testing

/// A kill is not a stop: `--revive` is `exitsWithFailureWhenKilled`.
@Suite("kills", .machines, .describesUnits) struct KilledDaemonTests {
  private static let restarts = ["Restart=on-failure", "RestartSec=0"]
  /// Kills, and is not done before the daemon is: else systemd sends a SIGTERM of its own right behind.
  private static let killingStop =
    "ExecStop=/bin/sh -c 'kill $MAINPID; while kill -0 $MAINPID; do sleep .05; done'"

  /// Started, so that its next life can be told from this one.
  private func started(
    _ machine: MachineTest, _ options: String = "--revive", _ line: String = ""
  ) async throws -> (Service, pid: Int) {
    let lines = (Self.restarts + [line]).joined(separator: "\n")
    let probe = try await machine.lifecycle(options, lines)
    try await probe.start()
    return (probe, try await probe.mainPID)
  }

  /// As an operator who has found the wrong number, or a script of the year before.
  private func kill(_ pid: Int, _ machine: MachineTest) async throws {
    try await machine.expect("sh", "-c", "kill \(pid)")
  }

  /// Another process, in the foreground.
  private func isRevived(_ probe: Service, after pid: Int) async throws {
    try await probe.wait("NRestarts", is: "1")
    try await probe.wait("ActiveState", is: "active")
    #expect(try await probe.mainPID != pid)
    try await probe.stopsWell()
  }

  /// systemd is through with it, and does not start it again.
  private func staysDown(_ probe: Service, _ state: String, status: String) async throws {
    try await probe.wait("ActiveState", is: state)
    #expect(try await probe.show("ExecMainStatus") == status)
    #expect(try await probe.show("Job") == "")
    #expect(try await probe.show("NRestarts") == "0")
    #expect(try await probe.lines("exit \(status)") == 1)
  }

  @Test(arguments: Release.selected)
  func aKilledDaemonIsStartedAgain(_ release: Release) async throws {
    try await release.test { machine in
      let (probe, pid) = try await started(machine)
      try await kill(pid, machine)
      let said = try await probe.waitForMessage("killed by SIGTERM from pid ")
      #expect(
        said.message.hasSuffix(" uid 0, not stopped by the service manager: ends with status 143"))
      #expect(said["PRIORITY"] == "4")
      // In order, all the same.
      #expect(try await probe.lines("terminate done") == 1)
      #expect(try await probe.lines("exit 143") == 1)
      try await isRevived(probe, after: pid)
    }
  }

  @Test(arguments: Release.selected)
  func unlessItIsAskedForItStaysDown(_ release: Release) async throws {
    try await release.test { machine in
      let (probe, pid) = try await started(machine, "")
      try await kill(pid, machine)
      try await staysDown(probe, "inactive", status: "0")
    }
  }

  @Test(arguments: Release.selected)
  func aStoppedDaemonStaysDown(_ release: Release) async throws {
    try await release.test { machine in
      let (probe, _) = try await started(machine)
      try await probe.stop()
      try await staysDown(probe, "inactive", status: "0")
      #expect(try await probe.show("Result") == "success")
    }
  }

  /// systemd sends that signal, and has no job.
  @Test(arguments: Release.selected)
  func systemctlKillIsAStop(_ release: Release) async throws {
    try await release.test { machine in
      let (probe, _) = try await started(machine)
      try await probe.kill("TERM")
      try await staysDown(probe, "inactive", status: "0")
    }
  }

  /// Another process kills, and systemd has a job.
  @Test(arguments: Release.selected)
  func aStopThatKillsIsAStop(_ release: Release) async throws {
    try await release.test { machine in
      let (probe, _) = try await started(machine, "--revive", Self.killingStop)
      try await probe.stop()
      try await staysDown(probe, "inactive", status: "0")
      try await probe.start()
      try await probe.restart()
      #expect(try await probe.lines("exit 0") == 2)
      #expect(try await probe.lines("terminate: SIGTERM from pid 1 ") == 0)
    }
  }

  /// To a daemon that is stopping, systemd sends nothing more.
  @Test(arguments: Release.selected)
  func aStopAfterAKillIsAStop(_ release: Release) async throws {
    try await release.test { machine in
      let (probe, pid) = try await started(machine, "--revive --gate=terminate:\(machine.gate)")
      try await kill(pid, machine)
      try await probe.waitForMessage("terminate: SIGTERM")
      try await machine.expect("systemctl", "stop", "--no-block", probe.name)
      try await probe.wait("Job") { !$0.isEmpty }
      try await machine.open(machine.gate)
      try await staysDown(probe, "inactive", status: "0")
    }
  }

  /// Then the sender alone decides.
  @Test(arguments: Release.selected)
  func withoutABusAKillIsOne(_ release: Release) async throws {
    try await release.test { machine in
      let (probe, pid) = try await started(machine, "--revive", "InaccessiblePaths=/run/dbus")
      try await kill(pid, machine)
      try await isRevived(probe, after: pid)
    }
  }

  /// Down as it should be, but marked as failed.
  @Test(arguments: Release.selected)
  func withoutABusAStopThatKillsIsAKill(_ release: Release) async throws {
    try await release.test { machine in
      let (probe, _) = try await started(
        machine, "--revive", "InaccessiblePaths=/run/dbus\n" + Self.killingStop)
      try await probe.stop()
      try await staysDown(probe, "failed", status: "143")
    }
  }

  /// Its systemd is not process 1.
  @Test(arguments: Release.selected)
  func aUsersServiceAlike(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let user = try await SessionTests.UserService(
        machine, "--revive", "Restart=on-failure", "RestartSec=0")
      try await user.systemctl("start", user.name)
      try await user.systemctl("kill", "--kill-whom=main", "--signal=TERM", user.name)
      let first = try await user.waitForMessage("exit 0")
      try await user.systemctl("start", user.name)
      let pid = try await user.show("MainPID")
      try await kill(Int(pid) ?? 0, machine)
      let second = try await user.waitForMessage("exit 143", after: first)
      try await user.waitForMessage("foreground done", after: second)
      #expect(try await user.show("NRestarts") == "1")
      try await user.systemctl("stop", user.name)
      try await user.waitForMessage("exit 0", after: second)
      #expect(try await user.show("Result") == "success")
    }
  }

  // MARK: Forgotten restarts

  /// 258 and later count from nought again; those before it take no notice.
  @Test(arguments: Release.selected)
  func systemdForgetsRestartsWhenAPartIsWellAgain(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      try await machine.expect("systemctl", "log-level", "debug")
      let (probe, pid) = try await started(machine, "--part=3")
      try await machine.expect("sh", "-c", "kill -KILL \(pid)")
      try await probe.waitForEntry { $0.message.contains("restart counter is at 1") }
      try await machine.waitForJournal("_PID=1", "UNIT=\(probe.name)") {
        $0.message.contains("Got notification message") && $0.message.contains("RESTART_RESET=1")
      }
      try await probe.wait("NRestarts", is: machine.systemd >= 258 ? "0" : "1")
      #expect(try await probe.show("ActiveState") == "active")
      try await probe.stopsWell()
    }
  }
}
