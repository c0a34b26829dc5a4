// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

/// Pollerd under the shipped unit and its sandbox.
@Suite("pollerd as a service", .machines, .describesUnits) struct PollerdServiceTests {
  @Test(arguments: Release.selected)
  func polls(_ release: Release) async throws {
    try await release.test { machine in
      let pollerd = try await machine.pollerd(config: "interval = 0.05")
      try await pollerd.start()
      let poll = try await pollerd.waitForMessage("poll 2 ")
      // As /proc/loadavg has it: 0.31 0.21 0.18 1/234 5678
      #expect(poll.message.split(separator: " ").count == 2 + 5)
      let status = try await machine.read("/proc/\(pollerd.mainPID)/status")
      #expect(status.contains("NoNewPrivs:\t1\n") && status.contains("Seccomp:\t2\n"))
      #expect(status.contains("CapBnd:\t0000000000000000\n"))
      let messages = try await pollerd.journal().map(\.message)
      // LogFilterPatterns= came with 253.
      #expect(machine.systemd < 253 || !messages.contains { $0.contains("thread priority") })
      #expect(try await machine.expect("id", "-un", poll["_UID"] ?? "?") == "pollerd")
    }
  }

  @Test(arguments: Release.selected)
  func goesOnCountingAfterARestart(_ release: Release) async throws {
    try await release.test { machine in
      let pollerd = try await machine.pollerd(config: "interval = 0.02")
      try await pollerd.start()
      try await pollerd.waitForMessage("poll 3 ")
      for _ in 0..<3 { try await pollerd.restart() }
      try await pollerd.waitForMessage("poll 6 ")
      try await pollerd.stop()
      #expect(try await pollerd.show("Result") == "success")

      let polls = try await pollerd.journal().filter { $0.message.hasPrefix("poll ") }
      let numbers = polls.compactMap { Int($0.message.split(separator: " ")[1]) }
      #expect(numbers == Array(1...numbers.count))
      var states = ""
      for path in machine.pollerdStates { states += try await machine.read(path) }
      #expect(states.contains("\"count\":\(numbers.count)"))
    }
  }

  /// A restart, an upgrade or a crash does not end an operator's pause; a stop does. $FDSTORE came with 254.
  @Test(arguments: Release.selected)
  func aPauseIsKept(_ release: Release) async throws {
    try await release.test { machine in
      guard machine.systemd >= 254 else { return }
      let pollerd = try await machine.pollerd(config: "interval = 0.05")
      try await pollerd.start()
      try await pollerd.kill("USR1")
      try await pollerd.waitForMessage("Entered the background in ")
      try await pollerd.restart()
      try await pollerd.waitForStatus { $0.hasPrefix("background, operator, since") }
      try await pollerd.kill("KILL")
      try await pollerd.wait("NRestarts", is: "1")
      // The status may still be the former run's: before the exec, SIGUSR2 would end it.
      try await pollerd.wait("ActiveState", is: "active")
      try await pollerd.waitForStatus { $0.hasPrefix("background, operator, since") }
      try await pollerd.kill("USR2")
      let resumed = try await pollerd.waitForMessage("Entered the foreground in ")
      try await pollerd.waitForMessage("poll ", after: resumed)

      try await pollerd.kill("USR1")
      try await pollerd.waitForStatus { $0.hasPrefix("background, operator, since") }
      try await pollerd.stop()
      try await pollerd.start()
      try await pollerd.waitForStatus { $0.hasPrefix("foreground since") }
    }
  }

  /// The check is the first line of ExecReload=, and uses what a reload does.
  @Test(arguments: Release.selected)
  func aBadConfigurationFailsTheReload(_ release: Release) async throws {
    try await release.test { machine in
      let pollerd = try await machine.pollerd(config: "interval = 0.05")
      try await pollerd.start()
      try await pollerd.waitForMessage("poll 2 ")
      let (pid, status) = (try await pollerd.mainPID, try await pollerd.show("StatusText"))

      try await machine.write(
        machine.pollerdConfig, "interval = 0.05\nsource = /proc/uptime\ninterval = soon")
      let refusal = try await pollerd.systemctl("reload")
      #expect(refusal.exit == .status(1), "\(refusal.text)")
      let error = try await pollerd.waitForMessage("\(machine.pollerdConfig), line 3: interval ")
      #expect(error["PRIORITY"] == "3")
      // As before: its own settings too, with which /proc/loadavg has five words.
      let poll = try await pollerd.waitForMessage("poll ", after: error)
      #expect(poll.message.split(separator: " ").count == 2 + 5)
      #expect(try await pollerd.mainPID == pid)
      #expect(try await pollerd.show("StatusText") == status)
      #expect(try await pollerd.show("ActiveState") == "active")
      #expect(try await pollerd.show("ReloadResult") == "exit-code")
      #expect(try await pollerd.lines("saved: ") == 0)

      try await machine.write(machine.pollerdConfig, "interval = 0.05\nsource = /proc/uptime")
      try await pollerd.reload()
      let reloaded = try await pollerd.waitForMessage(
        "settings: interval 0.05 seconds, source /proc/uptime")
      // The poll that was under way may have read the former source.
      let second = try await pollerd.waitForMessage(
        "poll ", after: try await pollerd.waitForMessage("poll ", after: reloaded))
      #expect(second.message.split(separator: " ").count == 2 + 2)
      let transition = try await pollerd.waitForTransition("reload")
      #expect(transition["LIFECYCLE_CAUSE"] == "SIGHUP from pid 1 uid 0")
      try await pollerd.waitForStatus { $0.contains("; reloaded ") }
      #expect(try await pollerd.mainPID == pid)
    }
  }

  /// `RestartPreventExitStatus=` takes precedence over `Restart=`, whatever that is.
  @Test(arguments: Release.selected, ["on-failure", "always"])
  func aBadConfigurationIsNotTriedAgain(_ release: Release, _ restart: String) async throws {
    try await release.test { machine in
      let pollerd = try await machine.pollerd(config: "interval = soon", "Restart=\(restart)")
      _ = try await pollerd.systemctl("start")
      try await pollerd.wait("ActiveState", is: "failed")
      #expect(try await pollerd.show("ExecMainStatus") == "78")
      #expect(try await pollerd.show("NRestarts") == "0")
      // What `journalctl --priority=err` shows, of the unit though its process ended at once.
      let errors = try await machine.journal(
        "--unit=\(pollerd.name)", "--priority=err", "SYSLOG_IDENTIFIER=pollerd")
      #expect(errors.count == 1 && errors.first?["_SYSTEMD_UNIT"] == pollerd.name)
      #expect(
        errors.first?.message.hasPrefix(
          "/etc/pollerd/t\(machine.number).conf, line 1: interval \"soon\" is not") == true)
    }
  }
}
