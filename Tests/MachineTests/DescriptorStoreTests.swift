// SPDX-License-Identifier: Apache-2.0
import Testing

/// Connections that outlive the process that answers them, and a socket that systemd listens on for it.
///
/// 252 has a store, but does not say so in the environment ($FDSTORE came with 254): there is none
/// then.
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

  @Test(arguments: Release.selected)
  func theFirstConnectionStartsTheService(_ release: Release) async throws {
    try await release.test { machine in
      let (service, port) = try await echo(machine)
      #expect(try await service.show("ActiveState") == "inactive")
      let answers = try await client(machine, port, service, "say hello")
      #expect(try await answers == [["\(service.mainPID)", "hello"]])
      try await service.waitForMessage("passed listener: ")
    }
  }

  @Test(arguments: Release.since(254))
  func aConnectionOutlivesARestart(_ release: Release) async throws {
    try await release.test { machine in
      let (service, port) = try await echo(machine)
      let answers = try await client(
        machine, port, service,
        """
        say one
        stored 1
        for word in two three; do
          systemctl restart "$unit"
          say "$word"
        done
        """)
      #expect(answers.map(\.last) == ["one", "two", "three"])
      #expect(Set(answers.map(\.first)).count == 3)
      #expect(try await answers.last?.first == "\(service.mainPID)")
      #expect(try await service.show("StatusText") == "1 connections")
    }
  }

  /// Sent while nobody is there, it waits in the socket.
  @Test(arguments: Release.since(254))
  func aCrashLosesNoConnection(_ release: Release) async throws {
    try await release.test { machine in
      let (service, port) = try await echo(machine)
      let answers = try await client(
        machine, port, service,
        """
        say one
        stored 1
        mkdir -p "/run/systemd/system/$unit.d"
        printf '[Service]\\nRestart=always\\n' >"/run/systemd/system/$unit.d/r.conf"
        systemctl daemon-reload
        systemctl kill --kill-whom=main --signal=KILL "$unit"
        say two
        rm -r "/run/systemd/system/$unit.d"
        """)
      #expect(answers.map(\.last) == ["one", "two"] && answers[0][0] != answers[1][0])
    }
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

  /// Closing alone would not hang up: systemd has a duplicate.
  @Test(arguments: Release.since(254))
  func whatIsForgottenIsHungUpOn(_ release: Release) async throws {
    try await release.test { machine in
      let (service, port) = try await echo(machine)
      let answers = try await client(
        machine, port, service,
        """
        say one
        stored 1
        say forget
        stored 0
        """)
      #expect(answers.map(\.last) == ["one", "closed"])
      #expect(answers.last?.first == "1")  // bash: the end, not a timeout
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
