// SPDX-License-Identifier: Apache-2.0
import Testing

/// The directory that the guide reads credentials from.
@Suite("credentials", .machines, .describesUnits) struct CredentialTests {
  /// What `ProbeService credential` says of these credentials.
  private func reading(
    _ names: String, _ machine: MachineTest, _ lines: String...,
    service body: (Service) async throws -> Void
  ) async throws {
    let service = try await machine.install(
      machine.unique("credential") + ".service",
      (["[Service]", "Type=notify", "ExecStart=/opt/machine/bin/ProbeService credential \(names)"]
        + lines).joined(separator: "\n") + "\n")
    try await service.start()
    try await body(service)
  }

  @Test(arguments: Release.selected, ["root", "daemon"])
  func areRead(_ release: Release, _ user: String) async throws {
    try await release.test { machine in
      let file = "/etc/secret-t\(machine.number)"
      try await machine.write(file, "from a file", mode: "600")
      try await reading(
        "file text missing", machine, "LoadCredential=file:\(file)",
        "SetCredential=text:of the unit",
        "User=\(user)"
      ) { service in
        try await service.waitForMessage("credential file: from a file")
        try await service.waitForMessage("credential text: of the unit")
        try await service.waitForMessage("credential missing: none")
      }
    }
  }

  @Test(arguments: Release.selected)
  func noneAtAll(_ release: Release) async throws {
    try await release.test { machine in
      try await reading("any", machine) { service in
        try await service.waitForMessage("credential any: none")
        #expect(try await !service.journal().contains { $0.message.hasPrefix("problem") })
      }
    }
  }
}
