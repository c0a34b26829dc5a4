// SPDX-License-Identifier: Apache-2.0
import TestSupport

extension MachineTest {
  /// The shipped pollerd as an instance of its template: `pollerd@tN.service`, with its own configuration and state.
  func pollerd(config: String = "", _ lines: String...) async throws -> Service {
    try await installPollerdFiles()
    try await write(pollerdConfig, config)
    return try await adopt(
      "pollerd@t\(number).service",
      dropIns: lines.isEmpty ? [] : ["[Service]\n" + lines.joined(separator: "\n") + "\n"])
  }

  var pollerdConfig: String { "/etc/pollerd/t\(number).conf" }

  /// Where `pollerd(config:)` keeps its count, in turns.
  var pollerdStates: [String] { ["0", "1"].map { "/var/lib/pollerd-t\(number)/state.\($0)" } }

  func installPollerdFiles() async throws {
    try await installExample("pollerd", units: "pollerd.service", "pollerd@.service")
  }

  /// All that `systemd/README.md` says to install of one, as it says; the same for every test, so it stays.
  func installExample(_ name: String, units: String...) async throws {
    for unit in units {
      try await put("/etc/systemd/system/" + unit, try Package.read("systemd/" + unit))
    }
    let user = "sysusers.d/\(name).conf"
    try await put("/etc/" + user, try Package.read("systemd/" + user))
    try await expect("systemd-sysusers")
    try await expect("ln", "-sfn", "/opt/machine/bin/" + name, "/usr/local/bin/" + name)
  }
}
