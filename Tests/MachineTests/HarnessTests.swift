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

  /// The real logind; what it writes to is not the kernel.
  @Test(arguments: Release.selected)
  func itCanBeSuspended(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      try await machine.expect("systemctl", "suspend")
      // Not by its unit: that is unknown where the process has ended before the journal reads what it said.
      try await machine.waitForJournal("--identifier=systemd-sleep") {
        $0.message.hasPrefix("System returned from sleep")
      }
      #expect(try await machine.read("/sys/power/state") == "mem")
    }
  }

  @Test(arguments: Release.selected)
  func itCanBePoweredOff(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let service = try await machine.service(
        "last", exec: "/bin/sleep infinity", "ExecStop=/bin/sh -c 'echo good night >/share/said'")
      try await service.start()
      try await machine.expect("systemctl", "poweroff", "--no-block")
      try await machine.machine.waitUntilOff()
      let said = try String(contentsOfFile: machine.share + "/said", encoding: .utf8)
      #expect(said == "good night\n")
    }
  }

  @Test(arguments: Release.selected, [true, false])
  func delayLocksNeedPolkit(_ release: Release, polkit: Bool) async throws {
    try await release.test(on: .own(polkit: polkit)) { machine in
      try await machine.installPollerdFiles()
      let lock = try await machine.run(
        "runuser", "-u", "pollerd", "--", "systemd-inhibit", "--what=sleep", "--mode=delay", "true")
      #expect(lock.status == (polkit ? 0 : 1))
      #expect(lock.stderr.contains("denied") == !polkit)
    }
  }
}
