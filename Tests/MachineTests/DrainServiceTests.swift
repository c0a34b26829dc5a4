// SPDX-License-Identifier: Apache-2.0
import Testing

/// The drain delay on a real systemd: it is told of the stop at once, and waits for the end of it.
@Suite("drain", .machines, .describesUnits) struct DrainServiceTests {
  @Test(arguments: Release.selected)
  func aStopBeginsWithIt(_ release: Release) async throws {
    try await release.test { machine in
      let folder = "pollerd-t\(machine.number)"
      let ready = "/run/\(folder)/ready"
      let pollerd = try await machine.pollerd(
        "RuntimeDirectory=\(folder)", "ExecStart=",
        "ExecStart=/usr/local/bin/pollerd --interval=0.1 --drain=8 --ready-file=\(ready)")
      try await pollerd.start()
      #expect(try await machine.read(ready).hasPrefix("ready\npid "))
      try await machine.expect("systemctl", "stop", "--no-block", pollerd.name)
      try await pollerd.wait("ActiveState", is: "deactivating")
      try await machine.wait(until: "! test -e \(ready)")
      let status = try await pollerd.show("StatusText")
      #expect(status.hasPrefix("draining for 8 s, then stopping: SIGTERM from pid 1"))
      // What an impatient operator does.
      try await pollerd.kill("TERM")
      try await pollerd.wait("ActiveState", is: "inactive")
      #expect(try await pollerd.show("Result") == "success")
      try await pollerd.waitForMessage("Draining for 8 s, then stopping (SIGTERM")
      try await pollerd.waitForMessage("background: SIGTERM")
      try await pollerd.waitForMessage("save: SIGTERM")
    }
  }
}
