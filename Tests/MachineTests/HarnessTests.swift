// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

/// What the other tests build on.
@Suite("Machine", .machines, .describesUnits) struct HarnessTests {
  @Test(arguments: Release.selected)
  func itIsTheSystemdOfItsRelease(_ release: Release) async throws {
    try await release.test { machine in
      let version = try await machine.expect("systemctl", "--version")
      #expect(version.hasPrefix("systemd \(machine.systemd) "))
      #expect(try await machine.expect("cat", "/proc/1/comm") == "systemd")
    }
  }

  @Test(arguments: Release.selected)
  func waitsSeeWhatHappens(_ release: Release) async throws {
    try await release.test { machine in
      let script = "systemd-notify --ready --status=here; echo began; exec sleep infinity"
      let service = try await machine.service(
        "waits", exec: "/bin/sh -c '\(script)'", type: "notify", "NotifyAccess=all")
      async let active: Void = service.wait("ActiveState", is: "active")
      async let began = service.waitForMessage("began")
      try await service.start()
      try await active
      #expect(try await began["_SYSTEMD_UNIT"] == service.name)
      #expect(try await service.show("StatusText") == "here")
      try await service.kill("TERM")
      try await service.wait("ActiveState", is: "inactive")
      await #expect(throws: MachineFailure.self) {
        try await service.wait("ActiveState", is: "active", within: .milliseconds(50))
      }
      await #expect(throws: MachineFailure.self) {
        try await service.waitForMessage("never", within: .milliseconds(50))
      }
    }
  }

  /// Nobody else would end it.
  @Test(arguments: Release.selected)
  func aCommandIsEndedAtItsLimit(_ release: Release) async throws {
    try await release.test { machine in
      let mark = "3600.\(machine.number)"
      await #expect(throws: MachineFailure.self) {
        _ = try await machine.run("sleep", mark, within: .seconds(1))
      }
      let script = "exec sleep $1"
      let line = try await machine.machine.firstLine(of: script, [mark], within: .seconds(1)) { $0 }
      #expect(line == nil)
      let alive = try await machine.shell("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
      #expect(!alive.stdout.contains(mark))
    }
  }

  @Test(arguments: Release.selected)
  func aTestLeavesNothing(_ release: Release) async throws {
    let (unit, directory) = try await release.test { machine in
      let directory = machine.unique("leaves")
      let service = try await machine.service(
        "leaves", exec: "/bin/sleep infinity", "StateDirectory=\(directory)")
      try await service.start()
      return (service.name, directory)
    }
    try await release.test { machine in
      let left = try await machine.shell(
        "systemctl is-active $1; ls -d /etc/systemd/system/$1* /var/lib/$2", unit, directory)
      #expect(left.stdout == "inactive\n")
    }
  }

  // MARK: Machines of their own
}
