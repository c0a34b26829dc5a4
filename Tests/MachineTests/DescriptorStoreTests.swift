// SPDX-License-Identifier: Apache-2.0
import Testing

/// Connections that outlive the process that answers them, and a socket that systemd listens on for it.
///
/// 252 has a store, but does not say so in the environment ($FDSTORE came with 254): `DescriptorStore` is then
/// none.
@Suite("descriptors", .machines, .describesUnits) struct DescriptorStoreTests {
  /// `ProbeService echo` behind a socket unit.
  private func echo(_ machine: MachineTest) async throws -> (service: Service, port: Int) {
    let port = 9000 + machine.number
    let name = machine.unique("echo")
    let service = try await machine.install(
      name + ".service",
      """
      [Service]
      Type=notify
      ExecStart=/opt/machine/bin/ProbeService echo
      FileDescriptorStoreMax=16
      """)
    let socket = try await machine.install(
      name + ".socket",
      "[Socket]\nListenStream=127.0.0.1:\(port)\nFileDescriptorName=listener\n")
    try await socket.start()
    return (service, port)
  }

  /// Runs a script of bash with a connection as descriptor 3; `say` sends a line and prints the answer.
  private func client(
    _ machine: MachineTest, _ port: Int, _ service: Service, _ script: String
  ) async throws -> [[Substring]] {
    let prelude = """
      set -e
      exec 3<>"/dev/tcp/127.0.0.1/$0"
      say() { echo "$1" >&3; read -r -t 20 answer <&3 || answer="$? closed"; echo "$answer"; }
      stored() { until [ "$(systemctl show -P NFileDescriptorStore "$unit")" = "$1" ]; do sleep .05; done; }
      unit=$1
      \n
      """
    let output = try await machine.expect(
      "bash", "-c", prelude + script, "\(port)", service.name)
    return output.split(separator: "\n").map { $0.split(separator: " ") }
  }

  @Test(arguments: Release.since(254))
  func whatIsUnknownIsClosedAndRemoved(_ release: Release) async throws {
    try await release.test { machine in
      let (service, port) = try await echo(machine)
      let answers = try await client(
        machine, port, service,
        """
        say plant
        stored 2
        systemctl restart "$unit"
        stored 1
        say still
        """)
      #expect(answers.map(\.last) == ["plant", "still"])
      try await service.waitForMessage("closed unknown unknown")
    }
  }

  /// A peer that hangs up is dropped by systemd, too, unless FDPOLL=0 says that it can't tell.
  @Test(arguments: Release.since(254))
  func whatIsHungUpOnIsDroppedUnlessNotPolled(_ release: Release) async throws {
    try await release.test { machine in
      let (service, port) = try await echo(machine)
      let answers = try await client(
        machine, port, service,
        """
        say hung
        say hung-kept
        stored 2
        systemctl restart "$unit"
        say still
        stored 1
        """)
      #expect(answers.map(\.last) == ["hung", "hung-kept", "still"])
      try await service.waitForMessage("closed unknown hung-kept")
      #expect(try await !service.journal().contains { $0.message == "passed hung: pipe" })
      #expect(try await !service.journal().contains { $0.message.hasSuffix("unknown hung") })
    }
  }
}
