// SPDX-License-Identifier: Apache-2.0
import Testing

/// SIGTERM, and how long it may take.
@Suite("stop", .machines, .describesUnits) struct StopTests {
  /// The limit is known over the bus only.
  @Test(arguments: Release.selected)
  func aStuckHookIsGivenUpInTime(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle("--stuck=background", "TimeoutStopSec=6")
      try await probe.start()
      async let stop: Void = probe.stop()
      try await probe.waitForStatus {
        $0 == "stopping: 0 of 3 done, waiting for LifecycleProbe, 1 s"
      }
      try await stop
      #expect(try await probe.show("Result") == "exit-code")
      #expect(try await probe.show("ExecMainStatus") == "124")
      #expect(try await probe.lines("save done") == 1)
      let culprits = try await machine.journal(
        "_SYSTEMD_UNIT=\(probe.name)", "LIFECYCLE_OUTCOME=abandoned")
      #expect(culprits.map { $0["LIFECYCLE_OBSERVER"] } == ["LifecycleProbe"])
      #expect(culprits.first?.message.contains("DidEnterBackground: abandoned after") == true)
      let timeline = try await probe.timeline()
      #expect(timeline["PRIORITY"] == "4")
      let row = try #require(timeline.message.split(separator: "\n").last)
      #expect(
        row.hasPrefix("! LifecycleProbe  |xxx")
          && row.hasSuffix("  pause abandoned: did not end, saved"))
    }
  }

  /// Only systemd knows, and nothing but its bus says so.
  @Test(arguments: Release.selected)
  func aRestartIsToldFromAStop(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle()
      try await probe.start()
      try await machine.expect("systemctl", "restart", probe.name)
      #expect(try await probe.lines("job: restart") == 1)
      try await machine.expect("systemctl", "try-restart", probe.name)
      #expect(try await probe.lines("job: restart") == 2)
      try await probe.stopsWell()
      #expect(try await probe.lines("job: stop") == 1)
      try await probe.start()
      try await machine.expect("systemctl", "kill", "--kill-whom=main", probe.name)
      try await probe.waitForMessage("job: none")
    }
  }

  // MARK: More time

  // On machines of their own: they have systemd read its files anew when a unit's own limit is over. It forgets then that
  // it was asked for more time, which it must be told again while it reads.

  @Test(arguments: Release.selected)
  func aLaunchGetsMoreTime(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let probe = try await machine.lifecycle(
        "--extend=launch:60 --slow=launch:5", "TimeoutStartSec=2")
      async let start: Void = probe.start()
      try await probe.waitForStatus { $0.contains(", 3") }
      try await machine.expect("systemctl", "daemon-reload")
      try await start
      #expect(try await probe.show("ActiveState") == "active")
      try await probe.stopsWell()
    }
  }

  /// Neither before the unit's own limit is over, nor after.
  @Test(arguments: Release.selected)
  func aDaemonReloadTakesNoneAway(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let probe = try await machine.lifecycle(
        "--extend=terminate:60 --slow=terminate:9", "TimeoutStopSec=5")
      try await probe.start()
      try await machine.expect("systemctl", "stop", "--no-block", probe.name)
      for (time, command) in [(1, "daemon-reload"), (6, "daemon-reload"), (7, "daemon-reexec")] {
        try await probe.waitForStatus { $0.contains(", \(time)") }
        try await machine.expect("systemctl", command)
      }
      try await probe.wait("ActiveState", is: "inactive")
      #expect(try await probe.show("Result") == "success")
      #expect(try await probe.lines("terminate done") == 1)
    }
  }

  /// systemd limits it by the time for the start, until the daemon is ready.
  @Test(arguments: Release.selected)
  func aStopDuringTheStartHasItsTime(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle(
        "--slow=launch:2 --slow=save:3", "TimeoutStartSec=3")
      try await machine.expect("systemctl", "start", "--no-block", probe.name)
      try await probe.waitForMessage("launch: launch")
      try await probe.kill("TERM")
      try await probe.waitForMessage("exit 0")
      #expect(try await probe.lines("save done") == 1)
    }
  }

  // MARK: What systemd hears

  /// What systemd has received, as it says when it is asked to say everything.
  @Test(arguments: Release.selected)
  func allIsToldOnceAndInOrder(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      try await machine.expect("systemctl", "log-level", "debug")
      let probe = try await machine.lifecycle("--gate=reload:\(machine.gate)")
      try await probe.start()
      try await machine.expect("systemctl", "reload", "--no-block", probe.name)
      // Not by the journal: with so much said at once, 252's seems to take a process that is new to it for
      // one of no unit.
      try await probe.waitForStatus { $0.hasPrefix("reloading: 1 of 2") }
      async let stop: Void = probe.stop()
      try await probe.waitForStatus { $0.hasPrefix("stopping") }
      try await probe.kill("INT")
      try await machine.open(machine.gate)
      try await stop
      let said = try await machine.journal("_PID=1", "UNIT=\(probe.name)").map(\.message)
        .filter { $0.contains("Got notification message") }
      let states = ["READY=1", "RELOADING=1", "STOPPING=1"]
      let order = said.flatMap { message in states.filter { message.contains($0) } }
      #expect(order == states)
      #expect(said.contains { $0.contains("RELOADING=1") && $0.contains("MONOTONIC_USEC=") })
    }
  }
}
