// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

/// What is left to read of a machine that is off is in /share.
@Suite("shutdown of the machine", .machines, .describesUnits) struct ShutdownTests {
  private static let hasLock =
    "systemd-inhibit --list | grep -q 'ProbeService.* shutdown .* delay'"

  /// Everything that the service has said and saved, until the machine was off.
  private func saying(
    _ release: Release, _ options: String, polkit: Bool = true, user: String = "root",
    ready: (MachineTest, Service) async throws -> Void
  ) async throws -> [String] {
    try await release.test(on: .own(polkit: polkit)) { machine in
      try await machine.write(
        "/etc/systemd/logind.conf.d/delay.conf", "[Login]\nInhibitDelayMaxSec=60\n")
      try await machine.expect("systemctl", "restart", "systemd-logind")
      let service = try await machine.lifecycle(
        "\(options) --state=/share/said", "StandardOutput=append:/share/said",
        "StandardError=journal", "User=\(user)",
        "UMask=0")
      try await machine.expect("install", "-m", "666", "/dev/null", "/share/said")
      try await service.start()
      try await ready(machine, service)
      // The machine may be gone before the command is.
      _ = try? await machine.run("systemctl", "poweroff")
      try await machine.machine.waitUntilOff()
      return try String(contentsOfFile: machine.share + "/said", encoding: .utf8)
        .split(separator: "\n").map(String.init)
    }
  }

  /// Its kind is known from 255 on.
  private func cause(_ release: Release) -> String {
    "the machine is about to " + (release.systemd >= 255 ? "power off" : "shut down")
  }

  /// The lock would hold for a minute: so it was released after the save.
  @Test(arguments: Release.selected, ["root", "daemon"])
  func savesBeforeSIGTERMComes(_ release: Release, _ user: String) async throws {
    let said = try await saying(release, "--shutdown --slow=save:1", user: user) { machine, _ in
      try await machine.wait(until: Self.hasLock)
    }
    let saves = said.filter { $0.hasPrefix("saved: ") }
    #expect(saves.count == 2 && saves.first == "saved: \(cause(release))")
    #expect(saves.last?.hasPrefix("saved: SIGTERM from pid 1") == true)
    let saved = try #require(said.firstIndex(of: "saved: \(cause(release))"))
    let terminated = try #require(said.firstIndex { $0.contains(": SIGTERM") })
    #expect(saved < terminated)
    // Not a pause: SIGTERM follows.
    #expect(said.filter { $0.hasPrefix("background:") }.count == 1)
  }

  @Test(arguments: Release.selected)
  func withoutPolkitItIsHeardAllTheSame(_ release: Release) async throws {
    let said = try await saying(release, "--shutdown", polkit: false, user: "daemon") {
      _, service in
      try await service.waitForEntry {
        $0.message == "no delay lock: a shutdown does not wait for the save"
      }
    }
    #expect(said.contains { $0.hasPrefix("saved: ") })
  }
}
