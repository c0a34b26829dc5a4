// SPDX-License-Identifier: Apache-2.0
import Testing

/// What `journalctl LIFECYCLE_EVENT=…` finds.
@Suite("journal", .machines, .describesUnits) struct JournalTests {
  @Test(arguments: Release.selected)
  func transitionsAreFound(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle()
      try await probe.start()
      try await probe.kill("USR1")
      let pause = try await probe.waitForTransition("background")
      #expect(pause.message.hasPrefix("Entered the background in "))
      let fields = [
        "MESSAGE_ID": "b9ab8dc464b24c518935721cb1171b33", "PRIORITY": "5",
        "LIFECYCLE_STATE": "background", "LIFECYCLE_REASON": "operator",
        "LIFECYCLE_CAUSE": "SIGUSR1 from pid 1 uid 0", "LIFECYCLE_SIGNAL": "SIGUSR1",
        "LIFECYCLE_SENDER_PID": "1", "LIFECYCLE_SENDER_UID": "0", "LIFECYCLE_PROBLEMS": "0",
        "SYSLOG_IDENTIFIER": "ProbeService", "_TRANSPORT": "journal",
      ]
      for (name, value) in fields { #expect(pause[name] == value, "\(name)") }
      try await probe.kill("USR2")
      try await probe.waitForTransition("foreground")
      try await probe.reload()
      try await probe.waitForTransition("reload")
      try await probe.stopsWell()
      let kinds = [
        ("7661d9a0b7f44df78cf89eca95be801a", "launch"),
        ("7a23e78e7d1e43de9af80e749ceb84c1", "foreground"),
        ("2800c7fcc3ec4765aa25ab97ee303c75", "reload"),
        ("e4b7e8363c7c45e49a99b37ae5a42e3d", "terminate"),
        ("5abc37cbba064215b4294a5299559cdc", "terminate"),
      ]
      for (id, event) in kinds {
        let found = try await machine.journal("MESSAGE_ID=\(id)", "_SYSTEMD_UNIT=\(probe.name)")
        #expect(found.map { $0["LIFECYCLE_EVENT"] } == [event])
      }
    }
  }

  /// One entry, which journalctl shows as it was written.
  @Test(arguments: Release.selected)
  func aStopIsATimeline(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle("--slow=save:1", "TimeoutStopSec=30")
      try await probe.start()
      try await probe.stopsWell()
      let timeline = try await probe.timeline()
      let lines = timeline.message.split(separator: "\n", omittingEmptySubsequences: false)
      #expect(lines.first?.hasPrefix("terminate (SIGTERM from pid 1 uid 0) in 1") == true)
      #expect(lines.first?.hasSuffix(" s of 29 s") == true)
      #expect(
        lines.contains { $0.hasPrefix("  LifecycleProbe  |") && $0.contains("###") }, "\(lines)")
      #expect(timeline.message.utf8.allSatisfy { $0 == 10 || (0x20..<0x7F).contains($0) })
      #expect(timeline["LIFECYCLE_BUDGET_USEC"] == "29000000")
      #expect(timeline["PRIORITY"] == "5")
      let shown = try await machine.run(
        "journalctl", "--no-pager", "--output=cat", "MESSAGE_ID=5abc37cbba064215b4294a5299559cdc",
        "_SYSTEMD_UNIT=\(probe.name)")
      #expect(shown.text == timeline.message)
    }
  }

  /// Standard error is the journal's all the same.
  @Test(arguments: Release.selected)
  func withoutItsSocketThereAreLines(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle(
        "--fail=reload", "InaccessiblePaths=/run/systemd/journal/socket")
      try await probe.start()
      try await probe.reload()
      let problem = try await probe.waitForEntry { $0.message.hasSuffix(": reload fails") }
      #expect(problem["PRIORITY"] == "3" && problem["_TRANSPORT"] == "stdout")
      let launch = try await probe.waitForMessage("Started, pid ")
      #expect(launch["PRIORITY"] == "5" && launch["_TRANSPORT"] == "stdout")
      #expect(try await probe.transitions("launch").isEmpty)
      try await probe.stop()
      // Each line is an entry.
      let title = try await probe.waitForMessage("terminate (SIGTERM from pid 1 uid 0) in ")
      #expect(title["PRIORITY"] == "5" && !title.message.contains("\n"))
      try await probe.waitForMessage("  LifecycleProbe  |")
    }
  }
}
