// SPDX-License-Identifier: Apache-2.0
import Testing

@Suite("watched units", .machines, .describesUnits) struct WatchedUnitTests {
  @Test(arguments: Release.selected)
  func aRestartAndAFailureAreAPause(_ release: Release) async throws {
    try await release.test { machine in
      let unit = try await machine.service(
        "needed", exec: "/bin/sleep infinity", "ExecStartPre=/bin/sleep 0.5")
      try await unit.start()
      let service = try await machine.lifecycle("--watch=\(unit.name)")
      try await service.start()
      let launched = try await service.waitForMessage("foreground: launch")
      try await unit.restart()
      let paused = try await service.waitForMessage("background: \(unit.name) is", after: launched)
      let resumed = try await service.waitForMessage(
        "foreground: \(unit.name) is active", after: paused)
      try await service.wait("StatusText") { $0.hasPrefix("foreground since") }
      try await unit.kill("KILL")
      try await service.waitForMessage("background: \(unit.name) is failed", after: resumed)
    }
  }

  @Test(arguments: Release.selected)
  func eachOfSeveralIsAReasonOfItsOwn(_ release: Release) async throws {
    try await release.test { machine in
      let names = ["a", "b"].map { machine.unique("needed-\($0)") + ".service" }
      var units: [Service] = []
      for name in names {
        units.append(try await machine.install(name, "[Service]\nExecStart=/bin/sleep infinity\n"))
      }
      let service = try await machine.lifecycle(
        names.map { "--watch=\($0)" }.joined(separator: " "))
      try await service.start()
      try await service.wait("StatusText") {
        $0.hasPrefix("background, \(names[0]), \(names[1]), since")
      }
      try await units[0].start()
      try await service.wait("StatusText") { $0.hasPrefix("background, \(names[1]), since") }
      try await units[1].start()
      try await service.wait("StatusText") { $0.hasPrefix("foreground since") }
      let causes = try await service.journal().map(\.message).filter { $0.hasPrefix("foreground:") }
      #expect(causes.last == "foreground: \(names[1]) is active")
      #expect(!causes.contains("foreground: \(names[0]) is active"))
    }
  }

  /// systemd sends its changes under the unit's own name alone.
  @Test(arguments: Release.selected)
  func anAliasIsFollowed(_ release: Release) async throws {
    try await release.test { machine in
      let unit = try await machine.service("needed", exec: "/bin/sleep infinity")
      let alias = machine.unique("alias") + ".service"
      // So that it is removed after the test.
      try await machine.write("/etc/systemd/system/\(alias)", "")
      try await machine.expect("ln", "-sf", unit.name, "/etc/systemd/system/\(alias)")
      try await machine.expect("systemctl", "daemon-reload")
      let service = try await machine.lifecycle("--watch=\(alias)")
      try await service.start()
      try await service.wait("StatusText") { $0.hasPrefix("background, \(alias), since") }
      try await unit.start()
      try await service.wait("StatusText") { $0.hasPrefix("foreground since") }
      try await unit.stop()
      try await service.wait("StatusText") { $0.hasPrefix("background, \(alias), since") }
    }
  }

  /// Of a mount without a file systemd forgets the unit, and makes it again: no property changes.
  @Test(arguments: Release.selected)
  func aMountWithoutAFileComesBack(_ release: Release) async throws {
    try await release.test { machine in
      let folder = "/run/mount_t\(machine.number)"
      let unit = "run-mount_t\(machine.number).mount"
      try await machine.expect("mkdir", "-p", folder)
      let mount = ["mount", "-t", "tmpfs", "tmpfs", folder]
      // Whether it is there at the start or not.
      let service = try await machine.lifecycle("--watch=\(unit)")
      try await service.start()
      try await service.wait("StatusText") { $0.hasPrefix("background, \(unit), since") }
      for _ in 1...4 {
        try await machine.expect("sh", "-c", mount.joined(separator: " "))
        try await service.wait("StatusText") { $0.hasPrefix("foreground since") }
        #expect(try await !service.show("StatusText").contains("not watched"))
        try await machine.expect("umount", folder)
        try await service.wait("StatusText") { $0.hasPrefix("background, \(unit), since") }
      }
    }
  }

  /// Nor has a transient unit a file, but its name may be mistyped: until it is there, it is no reason.
  @Test(arguments: Release.selected)
  func aTransientUnitIsFollowedOnceItIsThere(_ release: Release) async throws {
    try await release.test { machine in
      let unit = machine.unique("transient") + ".service"
      let service = try await machine.lifecycle("--watch=\(unit)")
      try await service.start()
      try await service.wait("StatusText") { $0.contains("not watched: there is no unit \(unit)") }
      for _ in 1...3 {
        try await machine.expect("systemd-run", "--unit=\(unit)", "sleep", "infinity")
        try await service.wait("StatusText") {
          $0.hasPrefix("foreground since") && !$0.contains("not watched")
        }
        try await machine.expect("systemctl", "stop", unit)
        try await service.wait("StatusText") { $0.hasPrefix("background, \(unit), since") }
      }
    }
  }

  /// To read a unit that is unloaded loads it, of which systemd sends a signal.
  @Test(arguments: Release.selected)
  func aUnitThatIsUnloadedIsNotReadForEver(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let service = try await machine.lifecycle("--watch=run-none.mount --watch=none.service")
      try await service.start()
      try await service.wait("StatusText") { $0.hasPrefix("background, run-none.mount, since") }
      let calls = "timeout 2 busctl monitor org.freedesktop.systemd1 | grep -c Member=UnitNew"
      let count = try await machine.shell(calls)
      #expect(Int(count.text.filter(\.isNumber)) ?? 99 < 10, "\(count.text)")
    }
  }

  /// An operator's typing error must not keep the daemon from its work.
  @Test(arguments: Release.selected)
  func aMistypedNameIsSaidAndIsNoReason(_ release: Release) async throws {
    try await release.test { machine in
      let name = machine.unique("postgersql") + ".service"
      let service = try await machine.lifecycle("--watch=\(name) --watch=no/unit")
      try await service.start()
      try await service.wait("StatusText") {
        $0.hasPrefix("foreground since") && $0.contains("not watched: ")
          && $0.contains("there is no unit \(name)") && $0.contains("no/unit")
      }
      #expect(
        try await !service.journal().contains { $0.message.hasPrefix("background:") })
    }
  }
}
