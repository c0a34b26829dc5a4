// SPDX-License-Identifier: Apache-2.0
import Synchronization
import TestSupport
import Testing

/// RELOADING=1 and its answer.
@Suite("reload", .machines, .describesUnits) struct ReloadTests {
  @Test(arguments: Release.since(253))
  func systemctlWaitsUntilItIsDone(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle("--gate=reload:\(machine.gate)")
      try await probe.start()
      async let reload: Void = probe.reload()
      try await probe.waitForStatus {
        $0.hasPrefix("reloading: 1 of 2 done, waiting for LifecycleProbe, ")
      }
      #expect(try await probe.show("ActiveState") == "reloading")
      #expect(try await probe.show("Job") != "0")
      try await machine.open(machine.gate)
      try await reload
      #expect(try await probe.show("ActiveState") == "active")
      #expect(try await probe.show("StatusText").contains("; reloaded "))
    }
  }

  @Test(arguments: Release.selected)
  func aRejectionIsInTheStatus(_ release: Release) async throws {
    try await release.test { machine in
      let config = "/etc/probe-t\(machine.number)"
      try await machine.write(config, "bad")
      let probe = try await machine.lifecycle("--config=\(config)")
      try await probe.start()
      try await probe.reload()
      let status = try await probe.waitForStatus { $0.contains("; reload rejected ") }
      #expect(status.hasPrefix("foreground since ") && status.hasSuffix("the configuration is bad"))
      #expect(try await probe.show("ActiveState") == "active")
      try await machine.write(config, "good")
      try await probe.reload()
      try await probe.waitForStatus { $0.contains("; reloaded ") && !$0.contains("reject") }
    }
  }

  /// What the guide says of a check beside `Type=notify-reload`: 262 checks first, 257 signals at once, and 252 does not
  /// know the type and signals nobody.
  @Test(arguments: Release.selected)
  func aCheckBesideNotifyReloadDependsOnTheVersion(_ release: Release) async throws {
    try await release.test { machine in
      let config = "/etc/probe-t\(machine.number)"
      try await machine.write(config, "good")
      let probe = try await machine.install(
        machine.unique("checked") + ".service",
        """
        [Service]
        Type=notify-reload
        ExecStart=/opt/machine/bin/ProbeService lifecycle --gate=reload:\(machine.gate)
        ExecReload=/bin/sh -c '! grep bad \(config)'

        """)
      try await probe.start()
      // On 252 the start does not wait for READY.
      try await probe.waitForMessage("foreground done")
      switch machine.systemd {
      case ..<253: try await probe.reload()
      case 262...:
        async let reload: Void = probe.reload()
        try await probe.waitForMessage("reload: SIGHUP")
        #expect(try await probe.show("Job") != "0")
        try await machine.open(machine.gate)
        try await reload
        #expect(try await probe.show("ActiveState") == "active")
        #expect(try await probe.lines("reload done") == 1)
      default: try await machine.open(machine.gate)
      }

      try await machine.write(config, "bad")
      #expect(try await probe.systemctl("reload").exit == .status(1))
      // A signal that was sent would have been answered before this one.
      try await probe.kill("USR1")
      try await probe.waitForMessage("background: SIGUSR1")
      #expect(try await probe.lines("reload: ") == (machine.systemd < 253 ? 0 : 1))
    }
  }

  /// systemd keeps its socket when it executes itself, and so the daemon keeps its connection.
  @Test(arguments: Release.since(253))
  func aManagerThatHasExecutedItselfIsAnswered(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let probe = try await machine.lifecycle("", "WatchdogSec=2")
      try await probe.start()
      for _ in 1...2 {
        try await machine.expect("systemctl", "daemon-reexec")
        try await probe.reload()
        try await probe.waitForStatus { $0.contains("; reloaded ") }
      }
      try await probe.stopsWell()
    }
  }

  /// A reload that returns has read what was written before it began.
  @Test(arguments: Release.since(253))
  func twoHundredInARow(_ release: Release) async throws {
    try await release.test { machine in
      let config = "/var/lib/probe-t\(machine.number)"
      let probe = try await machine.lifecycle("--config=\(config)")
      try await probe.start()
      let script = """
        for client in 1 2 3; do
          for i in $(seq 50); do timeout 60 systemctl reload $1 || echo "client $client: $?"; done &
        done
        for i in $(seq 50); do
          echo $i >$2
          timeout 60 systemctl reload $1 || echo "client 0: $?"
          [ "$(cat $2.used)" = $i ] || echo "stale: $(cat $2.used), not $i"
        done
        wait
        """
      let said = try await machine.shell(script, probe.name, config, within: .seconds(120))
      #expect(said.text == "")
      #expect(try await probe.show("ActiveState") == "active")
      let done = try await probe.lines("reload done")
      #expect(done >= 50)
      #expect(try await probe.transitions("reload").count == done)
      _ = try await machine.run("rm", "-f", config, config + ".used")
    }
  }

  /// What a restart takes the process away from fails; nothing else does, and nothing hangs.
  @Test(arguments: Release.selected)
  func twoHundredWithRestarts(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle()
      try await probe.start()
      let script = """
        for client in 1 2 3 4; do
          for i in $(seq 50); do timeout 60 systemctl reload $1 2>/dev/null; echo $?; done &
        done
        for i in $(seq 10); do timeout 60 systemctl restart $1; echo "restart $?"; done
        wait
        """
      let said = try await machine.shell(script, probe.name, within: .seconds(120))
      let results = said.text.split(separator: "\n").map(String.init)
      #expect(results.filter { $0 == "restart 0" }.count == 10)
      #expect(results.filter { $0 == "0" || $0 == "1" }.count == 200, "\(said.text)")
      // All that it was sent before has been heard when it has answered this one.
      let last = try await machine.journal("--unit=\(probe.name)").last
      try await probe.reload()
      try await probe.waitForEntry(after: last) { $0["LIFECYCLE_EVENT"] == "reload" }
      #expect(try await probe.show("ActiveState") == "active")
      try await probe.stopsWell()
      // Each run has answered what it began, but for the one that its SIGTERM met.
      let answered = try await probe.transitions("reload").count
      #expect(answered >= (try await probe.lines("reload done")))
    }
  }

  /// Other code of the daemon has taken SIGHUP and SIGTERM with a DispatchSource each.
  @Test(arguments: Release.since(253))
  func signalsThatDispatchHasTakenArrive(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle("--thief", "TimeoutStopSec=20")
      try await probe.start()
      try await probe.waitForStatus { status in
        ["SIGHUP", "SIGTERM"].allSatisfy {
          status.contains("; \($0) is also handled by a DispatchSource of this process")
        }
      }
      for _ in 1...50 { try await probe.reload() }
      #expect(try await probe.show("ActiveState") == "active")
      #expect(try await probe.lines("reload: SIGHUP by way of Dispatch") == 50)
      // Dispatch calls their handler when it has a thread for it: it may come after the answer to the reload.
      let theirs = Mutex(0)
      try await probe.waitForEntry { entry in
        theirs.withLock { theirs in
          if entry.message == "theirs" { theirs += 1 }
          return theirs == 50
        }
      }
      try await probe.stopsWell()
      #expect(try await probe.lines("terminate: SIGTERM by way of Dispatch") == 1)
    }
  }

  // MARK: Awkward times

  /// One that was overtaken before it read anything has not reloaded.
  @Test(arguments: Release.selected)
  func anOvertakenOneIsNotSaidToBeDone(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle("--gate=save:\(machine.gate)")
      try await probe.start()
      try await machine.expect("systemctl", "reload", "--no-block", probe.name)
      try await probe.waitForMessage("save: SIGHUP")
      async let stop: Void = probe.stop()
      try await probe.waitForMessage("Stopping (SIGTERM")
      try await machine.open(machine.gate)
      try await stop
      #expect(try await probe.show("Result") == "success")
      #expect(try await probe.lines("reload") == 0)
      #expect(try await probe.transitions("reload").isEmpty)
      let overtaken = try await machine.journal(
        "_SYSTEMD_UNIT=\(probe.name)", "LIFECYCLE_OUTCOME=overtaken")
      #expect(overtaken.map { $0["LIFECYCLE_EVENT"] } == ["reload"])
    }
  }
}
