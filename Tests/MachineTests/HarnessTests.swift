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
}
