// SPDX-License-Identifier: Apache-2.0
extension MachineTest {
  /// `ProbeService` as something else, such as `credential name`.
  func probe(_ arguments: String, type: String = "notify", _ lines: String...) async throws
    -> Service
  {
    try await probe(arguments, type: type, lines)
  }

  /// What answers a reload: 252 does not know `notify-reload`, and sends SIGHUP as its unit says.
  var reloadingType: String { reloadingType("--system") }

  /// As `reloadingType`, for a unit of the `--system` or a `--user`.
  func reloadingType(_ manager: String) -> String {
    // "+": not as the service's user, who may not ask this of the system's manager.
    let reload =
      (manager == "--system" ? "+" : "")
      + "systemctl \(manager) kill --kill-whom=main --signal=HUP %n"
    return systemd >= 253 ? "notify-reload" : "notify\nExecReload=\(reload)"
  }

  private func probe(
    _ arguments: String, type: String, _ lines: [String]
  ) async throws -> Service {
    let kind = arguments.split(separator: " ").first.map(String.init) ?? "probe"
    let exec = "ExecStart=/opt/machine/bin/ProbeService \(arguments)"
    let text = (["[Service]", "Type=\(type)", exec] + lines).joined(separator: "\n") + "\n"
    return try await install(unique(kind) + ".service", text)
  }

  /// Waits until a shell script succeeds, asking again and again; its arguments are $1, $2…
  func wait(
    until script: String, _ arguments: String..., within limit: Duration = .seconds(60)
  ) async throws {
    let loop = "until (\(script)) >/dev/null 2>&1; do sleep .05; done; echo done"
    guard try await machine.firstLine(of: loop, arguments, within: limit, where: { $0 }) != nil
    else { throw MachineFailure("not so after \(limit): \(script) \(arguments)") }
  }
}
