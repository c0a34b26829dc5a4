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

  /// All that `systemd/README.md` says to install, as it says; the same for every test, so it stays.
  func installPollerdFiles() async throws {
    let folder = "/etc/systemd/system"
    var files = [("/etc/sysusers.d/pollerd.conf", "sysusers.d/pollerd.conf")]
    for name in ["pollerd.service", "pollerd@.service"] {
      files.append(("\(folder)/\(name)", name))
    }
    for (path, source) in files { try await put(path, try Package.read("systemd/" + source)) }
    try await expect("systemd-sysusers")
    try await expect("ln", "-sfn", "/opt/machine/bin/pollerd", "/usr/local/bin/pollerd")
  }
}
