// SPDX-License-Identifier: Apache-2.0
import Testing

/// The hot standby on the real systemd: who works is what the targets say, and there is always one.
@Suite("standby", .machines, .describesUnits) struct StandbyServiceTests {
  /// Started as the guide says: a works, b stands by and knows it.
  private func pair(_ machine: MachineTest) async throws -> StandbyPair {
    let pair = try await machine.standbyPair()
    try await pair.group.start()
    try await pair["a"].waitForMessage("a leads from 1")
    try await pair["b"].wait("StatusText") { $0.hasPrefix("background, standby-b.target, since") }
    return pair
  }

  /// The other has taken over from where this one was, and both are what they seem.
  private func waitUntilTakenOver(_ pair: StandbyPair, by name: String) async throws {
    try await pair[name].waitForMessage("\(name) leads from")
    try await pair[name].wait("StatusText") { $0.hasPrefix("foreground since") }
    let script = "until grep -q \" \(name)$\" /var/lib/standby/ledger; do sleep .02; done"
    _ = try await pair.machine.shell(script)
    let writers = try await pair.writers()
    let isInTurn = writers == writers.sorted { $0 != name && $1 == name }
    #expect(writers.last == name && isInTurn, "\(writers)")
  }

  @Test(arguments: Release.selected, ["stop", "crash"])
  func theOtherTakesOver(_ release: Release, end: String) async throws {
    try await release.test(on: .own()) { machine in
      let pair = try await pair(machine)
      if end == "crash" { try await pair["a"].kill("KILL") } else { try await pair["a"].stop() }
      try await waitUntilTakenOver(pair, by: "b")
      if end == "stop" {
        #expect(try await pair["a"].show("Result") == "success")
        try await pair["a"].start()
      }
      // Started again, by hand or by `Restart=`, it is the standby.
      try await pair["a"].wait("StatusText") {
        $0.hasPrefix("background, standby-a.target, since")
      }
    }
  }

  @Test(arguments: Release.selected)
  func anOperatorHandsOver(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let pair = try await pair(machine)
      try await pair.target("b").start()
      try await pair["a"].waitForMessage("a stands by at")
      try await waitUntilTakenOver(pair, by: "b")
      #expect(try await pair.target("a").show("ActiveState") == "inactive")
      #expect(try await pair["a"].show("ActiveState") == "active")
    }
  }

  @Test(arguments: Release.selected, [("a", "false"), ("b", "sleep infinity")])
  func oneThatDoesNotStartIsNotWaitedFor(
    _ release: Release, _ broken: (name: String, command: String)
  ) async throws {
    try await release.test(on: .own()) { machine in
      let pair = try await machine.standbyPair()
      let script = """
        drop=/run/systemd/system/standby@\(broken.name).service.d; mkdir -p $drop
        printf '[Service]\\nExecStart=\\nExecStart=\(broken.command)\\n' >$drop/broken.conf
        systemctl daemon-reload
        """
      _ = try await machine.shell(script)
      try await pair.group.start()
      let other = broken.name == "a" ? "b" : "a"
      try await pair[other].waitForMessage("\(other) leads from 1")
      #expect(try await pair[broken.name].show("ActiveState") == "activating")
    }
  }

  @Test(arguments: Release.selected, ["a", "b", "neither"])
  func stoppedAsAWholeNobodyTakesOver(_ release: Release, alreadyStopped: String) async throws {
    try await release.test(on: .own()) { machine in
      let pair = try await pair(machine)
      if alreadyStopped != "neither" { try await pair[alreadyStopped].stop() }
      if alreadyStopped == "a" { try await waitUntilTakenOver(pair, by: "b") }
      try await pair.group.stop()
      for name in ["a", "b"] {
        try await pair[name].wait("ActiveState", is: "inactive")
        #expect(try await pair.target(name).show("ActiveState") == "inactive")
      }
      if alreadyStopped != "a" { #expect(try await !pair.writers().contains("b")) }
      #expect(try await machine.expect("systemctl", "list-jobs", "--no-legend") == "")
    }
  }
}
