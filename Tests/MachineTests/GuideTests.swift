// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import Testing

/// `systemd/README.md`, taken at its word.
@Suite("guide", .machines, .describesUnits) struct GuideTests {
  /// The package's folder as the guide's commands find it: the unit files, and a product that was built.
  private static func putPackage(into machine: MachineTest, with product: String) throws {
    let package = machine.share + "/package"
    try FileManager.default.createDirectory(
      atPath: package + "/.build/release", withIntermediateDirectories: true)
    try FileManager.default.copyItem(
      atPath: Package.root + "/systemd", toPath: package + "/systemd")
    // What swift build has made, but for debugging.
    try FileManager.default.createSymbolicLink(
      atPath: package + "/.build/release/" + product,
      withDestinationPath: "/opt/machine/bin/" + product)
  }

  @Test(arguments: Release.selected)
  func itInstallsPollerd(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      try Self.putPackage(into: machine, with: "pollerd")

      let pollerd = try await machine.adopt("pollerd.service")
      var commands = try #require(try Self.shellBlocks().first { $0.contains("enable --now") })
      if machine.systemd < 253 {
        // Before the daemon-reload, as it says.
        let dropIns = try #require(try Self.shellBlocks().first { $0.contains("# systemd 252") })
        let first = try #require(dropIns.split(separator: "\n").first { $0.contains("252.conf") })
        commands = "\(first)\n\(commands)"
      }
      let said = try await machine.shell("set -e; cd /share/package; \(commands)")
      #expect(said.status == 0, "\(said.stderr)")
      try await pollerd.waitForMessage("poll 1 ")
      #expect(try await pollerd.show("UnitFileState") == "enabled")
      #expect(try await machine.expect("stat", "-c%U %a", "/var/lib/pollerd") == "pollerd 700")
    }
  }

  @Test(arguments: Release.since(253))
  func itInstallsEchod(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      try Self.putPackage(into: machine, with: "echod")
      let echod = EchodService(
        service: try await machine.adopt("echod.service"),
        socket: try await machine.adopt("echod.socket"), port: 7777)
      let commands = try #require(
        try Self.shellBlocks().first { $0.contains("enable --now echod.socket") })
      let said = try await machine.shell("set -e; cd /share/package; \(commands)")
      #expect(said.status == 0, "\(said.stderr)")
      #expect(try await echod.socket.show("UnitFileState") == "enabled")
      let counts = try await machine.load(echod, ["--clients=5"])
      #expect(counts["lines"] >= 15 && counts["bad"] == 0)
    }
  }

  @Test(arguments: Release.selected)
  func itInstallsStandby(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      try Self.putPackage(into: machine, with: "standby")
      let (a, b) = (
        try await machine.adopt("standby@a.service"), try await machine.adopt("standby@b.service")
      )
      let blocks = try Self.shellBlocks()
      let commands = try #require(blocks.first { $0.contains("enable --now standby") })
      let said = try await machine.shell("set -e; cd /share/package; \(commands)")
      #expect(said.status == 0, "\(said.stderr)")
      try await a.waitForMessage("standby: a leads from 1")
      try await b.waitForMessage("standby: b stands by at")
      // Then what it says of handing over, line by line.
      let block = try #require(blocks.first { $0.contains("start standby-b.target") })
      for line in block.split(separator: "\n") {
        let said = try await machine.shell(String(line))
        #expect(said.status == 0, "\(line): \(said.stdout)\(said.stderr)")
        switch true {
        case line.contains("start standby-b.target"):
          try await b.waitForMessage("standby: b leads from")
        case line.contains("stop standby@b"):
          let first = try await a.waitForMessage("standby: a stands by at 0")
          let led = try await a.waitForMessage("standby: a leads from", after: first)
          try await a.waitForMessage("standby: a leads from", after: led)
        default: break
        }
      }
      // Stopping the target does not wait for its parts.
      for instance in [a, b] { try await instance.wait("ActiveState", is: "inactive") }
    }
  }

  /// What it tells operators to type is understood, on the systemd that it was written for.
  @Test(arguments: Release.since(257))
  func itsCommandsWork(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      try await machine.installPollerdFiles()
      try await machine.write("/etc/pollerd/pollerd.conf", "interval = 0.05")
      let pollerd = try await machine.adopt("pollerd.service")
      try await pollerd.start()
      try await pollerd.waitForMessage("poll 1 ")
      let block = try #require(try Self.shellBlocks().first { $0.contains("SIGUSR1") })
      let answers = [
        ("SIGUSR1", "save: SIGUSR1"), ("SIGUSR2", "foreground: SIGUSR2"),
        ("reload pollerd", "reload: SIGHUP"), ("stop", "terminate: SIGTERM"),
      ]
      for line in block.split(separator: "\n") {
        let command = line.split(separator: "#")[0]
        if command.contains("edit") || command.contains("--follow") { continue }
        let said = try await machine.shell(String(command))
        #expect(said.status == 0, "\(command): \(said.stdout)\(said.stderr)")
        // A pause that is taken back at once is not delivered.
        for (words, message) in answers where command.contains(words) {
          try await pollerd.waitForMessage(message)
        }
      }
    }
  }

  private static func shellBlocks() throws -> [String] {
    try Package.read("systemd/README.md").components(separatedBy: "```sh\n").dropFirst()
      .map { $0.components(separatedBy: "```")[0] }
  }
}
