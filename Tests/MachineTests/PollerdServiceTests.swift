// SPDX-License-Identifier: Apache-2.0
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
  func pausesAndResumes(_ release: Release) async throws {
    try await release.test { machine in
      let pollerd = try await machine.pollerd(config: "interval = 0.02")
      try await pollerd.start()
      try await pollerd.waitForMessage("poll 3 ")
      try await pollerd.kill("USR1")
      try await pollerd.waitForMessage("save: SIGUSR1 from pid 1")
      try await pollerd.kill("USR2")
      let resumed = try await pollerd.waitForMessage("foreground: SIGUSR2 from pid 1")
      try await pollerd.waitForMessage("poll ", after: resumed)

      let messages = try await pollerd.journal().map(\.message)
      let paused = try #require(messages.firstIndex { $0.hasPrefix("background: SIGUSR1") })
      let between = messages[paused...].prefix { !$0.hasPrefix("foreground: SIGUSR2") }
      #expect(!between.contains { $0.hasPrefix("poll ") })
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

  @Test(arguments: Release.selected)
  func pollsAFile(_ release: Release) async throws {
    try await release.test { machine in
      let file = "/srv/t\(machine.number)"
      try await machine.write(file, "good day\n")
      let pollerd = try await machine.pollerd(config: "interval = 0.1\nsource = \(file)")
      try await pollerd.start()
      try await pollerd.waitForEntry { $0.message.hasSuffix(" good day") }
      try await machine.write(file, "good night\n")
      try await pollerd.waitForEntry { $0.message.hasSuffix(" good night") }
      try await machine.expect("rm", file)
      try await pollerd.waitForEntry { $0.message.contains(" failed: Could not read \(file): No") }
    }
  }

  /// Only what the unit allows: home folders are not, unless they are shown.
  @Test(arguments: Release.selected)
  func doesNotReachWhatIsNotAllowed(_ release: Release) async throws {
    try await release.test { machine in
      let file = "/home/t\(machine.number)/file"
      try await machine.write(file, "good day\n")
      let hidden = try await machine.pollerd(config: "interval = 0.1\nsource = \(file)")
      try await hidden.start()
      try await hidden.waitForMessage("poll 1 failed: Could not read \(file): ")
    }
  }

  @Test(arguments: Release.selected)
  func reachesWhatItIsShown(_ release: Release) async throws {
    try await release.test { machine in
      let file = "/home/t\(machine.number)/file"
      let shown = "/run/shown-t\(machine.number)"
      try await machine.write(file, "good day\n")
      let pollerd = try await machine.pollerd(
        config: "interval = 0.1\nsource = \(shown)", "BindReadOnlyPaths=\(file):\(shown)")
      try await pollerd.start()
      try await pollerd.waitForMessage("poll 1 good day")
    }
  }

  @Test(arguments: Release.selected)
  func aBadConfigurationIsNotTriedAgain(_ release: Release) async throws {
    try await release.test { machine in
      let pollerd = try await machine.pollerd(config: "interval = soon")
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

  @Test(arguments: Release.selected)
  func reloads(_ release: Release) async throws {
    try await release.test { machine in
      let pollerd = try await machine.pollerd(config: "interval = 3600")
      try await pollerd.start()
      try await pollerd.waitForMessage("poll 1 ")
      try await machine.write("/etc/pollerd/t\(machine.number).conf", "interval = 0.05")
      try await pollerd.reload()
      try await pollerd.waitForMessage("reload: SIGHUP from pid 1")
      try await pollerd.waitForMessage("poll 2 ")
      try await pollerd.waitForStatus {
        $0.hasPrefix("foreground since") && $0.contains("; reloaded ")
      }
    }
  }

  @Test(arguments: Release.selected)
  func aRejectedConfigurationChangesNothing(_ release: Release) async throws {
    try await release.test { machine in
      let pollerd = try await machine.pollerd(config: "interval = 0.05")
      try await pollerd.start()
      try await pollerd.waitForMessage("poll 1 ")
      try await machine.write("/etc/pollerd/t\(machine.number).conf", "interval = soon")
      try await pollerd.reload()
      let status = try await pollerd.waitForStatus { $0.contains("; reload rejected ") }
      #expect(status.hasPrefix("foreground since") && status.contains("interval \"soon\" is not"))
      // With another interval there would be no more polls so soon.
      let rejected = try await pollerd.waitForMessage("Reload rejected after ")
      #expect(rejected["PRIORITY"] == "3" && rejected.message.contains(", line 1: interval"))
      let poll = try await pollerd.waitForMessage("poll ", after: rejected)
      try await pollerd.waitForMessage("poll ", after: poll)
      #expect(try await pollerd.show("ActiveState") == "active")
    }
  }

  @Test(arguments: Release.selected)
  func itsWatchdogIsPinged(_ release: Release) async throws {
    try await release.test { machine in
      let pollerd = try await machine.pollerd(config: "interval = 0.1", "WatchdogSec=1")
      try await pollerd.start()
      try await pollerd.waitForPings(4)
      #expect(try await pollerd.show("NRestarts") == "0")
    }
  }

  /// A secret is a file that it alone can read.
  @Test(arguments: Release.selected)
  func pollsACredential(_ release: Release) async throws {
    try await release.test { machine in
      let token = "/etc/token-t\(machine.number)"
      try await machine.write(token, "open sesame\n", mode: "600")
      let unit = "pollerd@t\(machine.number).service"
      let config = "interval = 0.1\nsource = /run/credentials/\(unit)/pollerd.token"
      let pollerd = try await machine.pollerd(
        config: config, "LoadCredential=pollerd.token:\(token)")
      try await pollerd.start()
      try await pollerd.waitForMessage("poll 1 open sesame")
    }
  }
}
