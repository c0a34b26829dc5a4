// SPDX-License-Identifier: Apache-2.0
import Testing

/// READY=1, and what must have happened before it.
@Suite("readiness", .machines, .describesUnits) struct ReadinessTests {
  @Test(arguments: Release.selected)
  func theLaunchComesFirst(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle("--gate=launch:\(machine.gate)")
      try await machine.expect("systemctl", "start", "--no-block", probe.name)
      // It has lasted a second: what could have come too early has come.
      try await probe.waitForStatus { $0.hasPrefix("launching: 0 of 2 done, waiting for Lifec") }
      #expect(try await probe.show("ActiveState") == "activating")
      try await machine.open(machine.gate)
      try await probe.wait("ActiveState", is: "active")
      try await probe.waitForStatus {
        $0.hasPrefix("foreground since ") && $0.hasSuffix(" (launch)")
      }
    }
  }

  /// A database that comes up later, as in the guide. The status says what is waited for, and why.
  @Test(arguments: Release.selected)
  func whatItNeedsComesFirst(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle("--needs=\(machine.gate)")
      try await machine.expect("systemctl", "start", "--no-block", probe.name)
      try await probe.waitForStatus { $0.contains("waiting for database") }
      try await probe.waitForMessage("database restarts in ")
      #expect(try await probe.show("ActiveState") == "activating")
      try await machine.open(machine.gate)
      try await probe.wait("ActiveState", is: "active")
      try await probe.stopsWell()
    }
  }

  @Test(arguments: Release.selected, ["launch", "foreground"])
  func afterAFailedLaunchItWasNeverActive(_ release: Release, hook: String) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle("--fail=\(hook)")
      #expect(try await !probe.systemctl("start").isSuccess)
      #expect(try await probe.show("ActiveState") == "failed")
      #expect(try await probe.show("ExecMainStatus") == "70")
      #expect(try await probe.show("ActiveEnterTimestampMonotonic") == "0")
      // By its process: of one that has ended by the time its entry is read, journald does not know the unit any more.
      let process = try await probe.show("ExecMainPID")
      try await machine.waitForJournal("_PID=\(process)") {
        $0.message.contains("failed after") && $0["PRIORITY"] == "3"
      }
    }
  }

  /// 262 refuses a service without a handler for the reload signal at the moment of READY.
  @Test(arguments: Release.selected)
  func anEmptySignalMapAnswersReloads(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle("--empty-map")
      try await probe.start()
      try await probe.reload()
      try await probe.waitForStatus { $0.contains("; nothing reloaded ") }
      #expect(try await probe.show("ActiveState") == "active")
      #expect(try await probe.lines("reload") == 0)
      try await probe.stopsWell()
    }
  }

  /// As after nohup(1): what is ignored at the start stays ignored, but not what systemd reloads with.
  @Test(arguments: Release.selected)
  func anIgnoredReloadSignalIsHandled(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle(wrapper: #"trap "" HUP; exec $probe"#)
      try await probe.start()
      try await probe.reload()
      try await probe.waitForMessage("reload: SIGHUP from pid 1")
      try await probe.waitForStatus { $0.contains("; reloaded ") }
      try await probe.stopsWell()
    }
  }
}
