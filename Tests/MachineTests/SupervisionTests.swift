// SPDX-License-Identifier: Apache-2.0
import Testing

/// Who is heard, who is not, and who need not be.
@Suite("supervision", .machines, .describesUnits) struct SupervisionTests {
  /// The shell is the main process, and systemd hears nobody else.
  @Test(arguments: Release.selected)
  func oneThatIsNotHeardSaysSo(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle(wrapper: "$probe; true", "TimeoutStartSec=3")
      async let start = probe.systemctl("start")
      try await probe.waitForEntry {
        $0.message.hasPrefix("systemd has started process ")
          && $0.message.hasSuffix("Start it with exec, or set NotifyAccess=all.")
      }
      // Its part is done.
      try await probe.waitForMessage("foreground done")
      #expect(try await !start.isSuccess)
      #expect(try await probe.show("Result") == "timeout")
      // The shell dies at once, so systemd sends the others a second SIGTERM right behind the first.
      #expect(try await probe.lines("save done") == 1)
      #expect(try await probe.lines("exit ") == 1)
    }
  }

  @Test(arguments: Release.selected)
  func withNotifyAccessAllItIsHeard(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.lifecycle(
        wrapper: "trap : HUP TERM; $probe; true", "NotifyAccess=all")
      try await probe.start()
      try await probe.waitForStatus { $0.hasPrefix("foreground since ") }
      try await probe.stopsWell()
    }
  }

  /// Where systemd does not ask to be told, nothing is told and all else works.
  @Test(arguments: Release.selected)
  func aServiceThatDoesNotNotify(_ release: Release) async throws {
    try await release.test { machine in
      let probe = try await machine.service(
        "quiet", exec: "/opt/machine/bin/ProbeService lifecycle")
      try await probe.start()
      try await probe.waitForMessage("foreground done")
      try await probe.kill("USR1")
      try await probe.waitForTransition("background")
      #expect(try await probe.show("StatusText") == "")
      try await probe.stopsWell()
    }
  }
}
