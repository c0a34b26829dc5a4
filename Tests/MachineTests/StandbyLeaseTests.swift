// SPDX-License-Identifier: Apache-2.0
import Testing

/// Instances of which one has a lease, with flock(1) as the elector, on the real systemd.
@Suite("standby with a lease", .machines, .describesUnits) struct StandbyLeaseTests {
  private static let elector = """
    exec flock /var/lib/standby/lock sh -c '
      n=$(($(cat /var/lib/standby/fence 2>/dev/null || echo 0) + 1))
      echo $n >/var/lib/standby/fence.new
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
      let (said, lines) = (
        try await a.journal().map(\.message), try await machine.ledger()
      )
      #expect(!said.contains { $0.contains("KillMode=mixed") })
      // Each number once, and no token after a higher one.
      #expect(lines.map(\.number) == lines.indices.map { $0 + 1 })
      #expect(lines.compactMap(\.token) == lines.compactMap(\.token).sorted())
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
      try await a.waitForMessage("The lease ledger: it has not ended after SIGTERM, and is killed.")
    }
  }
}

extension MachineTest {
  fileprivate func ledger() async throws -> [(number: Int?, token: Int?)] {
    try await read("/var/lib/standby/ledger").split(separator: "\n").map {
      let words = $0.split(separator: " ")
      return (Int(words[0]), Int(words[2]))
    }
  }
}
