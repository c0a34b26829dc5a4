// SPDX-License-Identifier: Apache-2.0
import Testing

/// WATCHDOG=1: sent by who is well, and by nobody else.
@Suite("watchdog", .machines, .describesUnits) struct WatchdogTests {
  @Test(
    arguments: Release.selected,
    [
      Stuck(signal: "RTMIN+1", says: "pool blocked", culprit: "Swift's global executor"),
      Stuck(signal: "RTMIN+2", says: "main blocked", culprit: "the main actor"),
    ])
  func aStuckOneIsKilled(_ release: Release, stuck: Stuck) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle("", "WatchdogSec=2")
      try await probe.start()
      try await probe.waitForPings(2)
      try await probe.kill(stuck.signal)
      try await probe.waitForMessage(stuck.says)
      try await probe.waitForStatus {
        $0.contains("; not healthy: \(stuck.culprit)") && $0.hasSuffix("not answer")
      }
      try await probe.wait("ActiveState", is: "failed")
      #expect(try await probe.show("Result") == "watchdog")
      try await probe.waitForMessage("Not healthy: \(stuck.culprit)")
    }
  }

  struct Stuck: Sendable, CustomTestStringConvertible {
    let signal: String
    let says: String
    let culprit: String
    var testDescription: String { culprit }
  }

  @Test(arguments: Release.selected)
  func aSickOneIsKilled(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle("--sick=\(machine.gate)", "WatchdogSec=2")
      try await probe.start()
      try await probe.waitForPings(2)
      try await machine.open(machine.gate)
      try await probe.waitForStatus {
        $0.contains("; not healthy: ") && $0.hasSuffix("not well")
      }
      try await probe.wait("ActiveState", is: "failed")
      #expect(try await probe.show("Result") == "watchdog")
    }
  }

  /// Before 259 systemd names another process for the watchdog, and kills the daemon in half of the stops at once; READY=1
  /// arrives all the same.
  @Test(arguments: Release.selected)
  func inAPidNamespaceItIsOnOrSaidToBeOff(_ release: Release) async throws {
    try await release.test { machine in
      guard machine.systemd >= 257 else { return }
      let probe = try await machine.lifecycle("", "WatchdogSec=2", "PrivatePIDs=yes")
      try await probe.start()
      if machine.systemd >= 259 {
        try await probe.waitForPings(4)
        try await probe.stopsWell()
      } else {
        try await probe.waitForMessage(
          "systemd before version 259 does not know a daemon with PrivatePIDs")
        try await probe.stop()
      }
    }
  }

  // MARK: Stalls

  /// 252 does not stop its watchdog for a freeze, so there nothing that the daemon does could help.
  @Test(arguments: Release.selected)
  func itLivesThroughAFreeze(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle("", "WatchdogSec=1")
      try await probe.start()
      try await probe.waitForPings(2)
      let script = "systemctl freeze $1; sleep 3; systemctl thaw $1"
      let said = try await machine.shell(script, probe.name)
      if machine.systemd >= 257 {
        #expect(said.isSuccess)
        try await probe.waitForPings(4)
        try await probe.stopsWell()
      } else {
        try await probe.wait("Result", is: "watchdog")
      }
    }
  }

  @Test(arguments: Release.selected)
  func itLivesOnABusyMachine(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle("", "WatchdogSec=2")
      try await probe.start()
      let loops = "for i in 1 2 3 4 5 6 7; do while :; do :; done & done; while :; do :; done"
      let busy = try await machine.service("busy", exec: "/bin/sh -c '\(loops)'")
      try await busy.start()
      try await probe.waitForPings(5)
      try await busy.stop()
      try await probe.stopsWell()
    }
  }

  /// They have limits of their own.
  @Test(arguments: Release.selected)
  func aSlowReloadAndASlowStopAreNoFailure(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle("--slow=reload:3 --slow=terminate:3", "WatchdogSec=1")
      try await probe.start()
      try await probe.reload()
      try await probe.waitForTransition("reload")
      #expect(try await probe.show("ActiveState") == "active")
      try await probe.stopsWell()
    }
  }
}
