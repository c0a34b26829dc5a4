// SPDX-License-Identifier: Apache-2.0
import Testing

/// Instances of which one has a lease, with flock(1) as the elector, on the real systemd.
@Suite("standby with a lease", .machines, .describesUnits) struct StandbyLeaseTests {
  private static let elector = """
    exec flock /var/lib/standby/lock sh -c '
      n=$(($(cat /var/lib/standby/fence 2>/dev/null || echo 0) + 1))
      echo $n >/var/lib/standby/fence.new; echo $$ >/var/lib/standby/pid
      mv /var/lib/standby/fence.new /var/lib/standby/fence; echo $n; exec cat'
    """

  private func instances(
    _ machine: MachineTest, elector: String = elector, dropIn: String = ""
  ) async throws -> (a: Service, b: Service) {
    try await machine.installStandbyFiles()
    try await machine.write("/etc/standby/elector", elector, mode: "644")
    let faster = """
      [Service]
      ExecStart=
      ExecStart=/usr/local/bin/standby --name %i --elect 'exec sh /etc/standby/elector' --interval 0.1 \
      /var/lib/standby/ledger
      \(dropIn)
      """
    let a = try await machine.adopt("standby-lease@a.service", dropIns: [faster])
    let b = try await machine.adopt("standby-lease@b.service", dropIns: [faster])
    try await a.start()
    try await a.wait("StatusText") { $0.hasPrefix("foreground since") }
    try await b.start()
    try await b.wait("StatusText") { $0.hasPrefix("background, waiting for the lease ledger") }
    return (a, b)
  }

  @Test(arguments: Release.selected, ["stop", "restart", "crash"])
  func theOtherTakesOver(_ release: Release, end: String) async throws {
    try await release.test(on: .own()) { machine in
      let (a, b) = try await instances(machine)
      switch end {
      case "stop": try await a.stop()
      case "restart": try await a.restart()
      default: try await a.kill("KILL")
      }
      try await b.waitForMessage("b leads with the token 2")
      if end != "stop" {
        try await a.wait("StatusText") { $0.hasPrefix("background, waiting for the lease ledger") }
      } else {
        #expect(try await a.show("Result") == "success")
      }
      try await b.stop()
      let said = try await a.journal().map(\.message)
      #expect(!said.contains { $0.contains("KillMode=mixed") })
      try await machine.checkLedger()
    }
  }

  /// One after the other, as a package does it: who runs goes on with a program that has no name any more.
  @Test(arguments: Release.selected)
  func anUpgradeHandsOver(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let (a, b) = try await instances(machine)
      func replaceProgram() async throws {
        try await machine.expect(
          "cp", "--remove-destination", "/opt/machine/bin/standby", "/usr/local/bin/standby")
      }
      try await replaceProgram()
      try await b.restart()
      try await machine.waitForContenders()
      try await a.restart()
      try await b.waitForMessage("b leads with the token 2")
      try await machine.waitForContenders()
      try await replaceProgram()
      // The next elector of this one is run by the program that is gone.
      _ = try await machine.shell("kill -KILL $(cat /var/lib/standby/pid)")
      try await a.waitForMessage("a leads with the token 3")
      try await machine.waitForContenders()
      try await a.restart()
      try await b.waitForMessage("b leads with the token 4")
      try await machine.waitForContenders()
      for service in [a, b] { try await service.stopsWell() }
      try await machine.checkLedger()
    }
  }

  /// Frozen as a whole, with its elector, it keeps a lease that has no time to live.
  @Test(arguments: Release.selected)
  func aFrozenOneGoesOn(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let (a, b) = try await instances(machine)
      try await machine.expect("systemctl", "freeze", a.name)
      try await b.restart()
      try await machine.waitForContenders()
      let length = try await machine.read("/var/lib/standby/ledger").count
      try await machine.expect("systemctl", "thaw", a.name)
      try await machine.wait(
        until: "[ $(stat -c %s /var/lib/standby/ledger) -gt $1 ]", "\(length)")
      try await a.stopsWell()
      try await b.waitForMessage("b leads with the token 2")
      try await b.stopsWell()
      try await machine.checkLedger()
    }
  }

  /// Its elector lives, so that only the watchdog gives its lease to another.
  @Test(arguments: Release.selected)
  func oneThatHangsIsRestarted(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let (a, b) = try await instances(machine, dropIn: "WatchdogSec=2s")
      try await a.kill("STOP")
      try await b.waitForMessage("b leads with the token 2")
      try await a.waitForMessage("a stands by at")
      try await a.waitForStatus { $0.hasPrefix("background, waiting for the lease ledger") }
      try await b.stopsWell()
      try await machine.checkLedger()
    }
  }

  /// What an operator has forgotten is said at the start.
  @Test(arguments: Release.selected)
  func theDefaultKillModeIsWarnedOf(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let (a, b) = try await instances(machine, dropIn: "KillMode=control-group")
      try await a.waitForMessage(
        "The lease ledger: systemd ends its elector together with the daemon, before the save: set KillMode=mixed."
      )
      try await a.stop()
      try await b.stop()
    }
  }

  /// Stopped in the middle of a pause's save, and again: nobody else works before that has ended.
  @Test(arguments: Release.selected)
  func aStopWhileSavingKeepsIt(_ release: Release) async throws {
    try await release.test { machine in
      let lock = "/var/lib/" + machine.unique("lock")
      var services: [Service] = []
      for name in ["a", "b"] {
        services.append(
          try await machine.service(
            name,
            exec: "/opt/machine/bin/ProbeLease saving flock \(lock) sh -c 'echo \(name); exec cat'",
            type: "notify", "KillMode=mixed"))
      }
      let (a, b) = (services[0], services[1])
      try await a.start()
      try await a.waitForMessage("works with a")
      try await b.start()
      try await a.kill("USR1")
      let begun = try await a.waitForMessage("saves with a")
      try await a.kill("TERM")
      try await a.stopsWell()
      let saved = try await a.waitForMessage("has saved with a", after: begun)
      let taken = try await b.waitForMessage("works with b")
      #expect(taken.isAfter(saved))
      try await b.stopsWell()
    }
  }

  /// One that ignores SIGTERM is killed before the hook that waits for it is late, and systemd kills nothing.
  @Test(arguments: Release.selected)
  func aStubbornElectorEndsInAShortStop(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let stubborn =
        "trap '' TERM; exec 9>/var/lib/standby/lock; flock 9; echo 1; while :; do sleep 1; done"
      let (a, b) = try await instances(machine, elector: stubborn, dropIn: "TimeoutStopSec=4s")
      try await b.stop()
      try await a.stop()
      #expect(try await a.show("Result") == "success")
      #expect(try await a.show("ExecMainStatus") == "0")
      try await a.waitForMessage(
        "The lease ledger: its elector has not ended after SIGTERM, and is killed.")
    }
  }
}

extension MachineTest {
  /// Waits until one has the lease and the other waits for it.
  fileprivate func waitForContenders() async throws {
    try await wait(
      until: "[ $(grep -c :$(stat -c %i /var/lib/standby/lock) /proc/locks) = 2 ]")
  }
}
