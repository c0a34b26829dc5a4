// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

/// The units that users take as a model begin in the end, and end in time.
@Suite("model units", .machines, .describesUnits) struct ModelUnitTests {
  /// systemd's own default gives up after five quick failures.
  @Test(arguments: Release.selected)
  func whatItNeedsMayComeUpLater(_ release: Release) async throws {
    try await release.test { machine in
      var services: [Service] = []
      for unit in try ModelUnit.all() {
        let service = try await machine.install(
          unit, "ExecStartPre=/bin/test -e \(machine.gate)\nExecStart=/bin/sleep infinity")
        services.append(service)
      }
      let names = services.map(\.name).joined(separator: " ")
      try await machine.expect("sh", "-euc", "systemctl start --no-block \(names)")
      // The database takes as long to start.
      try await machine.expect("sleep", "20")
      try await machine.open(machine.gate)
      for service in services { try await service.wait("ActiveState", is: "active") }
    }
  }

  /// As at a shutdown: what conflicts with a target is stopped together, in its order. One unit after the other, since
  /// the network waits for each that is ordered after it.
  @Test(arguments: Release.selected)
  func theNetworkIsThereAtTheSave(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let network = try await machine.install(
        "network.service",
        """
        [Unit]
        Before=network.target
        Wants=network.target
        [Service]
        Type=oneshot
        RemainAfterExit=yes
        ExecStart=/bin/touch /run/network
        ExecStop=/bin/rm /run/network

        """)
      for unit in try ModelUnit.all() where !unit.isForAUser {
        // The shell forks nothing here: at a stop systemd ends what it forks, too. `$$` is a `$` in a unit.
        let wait =
          "i=0; while [ -e /run/network ] && [ $$i -lt 300000 ]; do i=$$((i + 1)); done"
        let save = "save() { \(wait); [ ! -e /run/network ] || : >/run/\(unit.stem); exit 0; }"
        let loop = "\(save); trap save TERM; : >/run/begun; while :; do sleep 1 & wait; done"
        let service = try await machine.install(unit, "ExecStart=/bin/sh -c '\(loop)'")
        let evening = try await machine.install(
          machine.unique(unit.stem) + ".target",
          """
          [Unit]
          DefaultDependencies=no
          Conflicts=\(service.name) network.target \(network.name)

          """)
        try await network.start()
        try await service.start()
        try await machine.wait(until: "rm /run/begun")
        try await evening.start()
        for stopped in [service, network] { try await stopped.wait("ActiveState", is: "inactive") }
        let saved = try await machine.run("test", "-e", "/run/\(unit.stem)")
        #expect(saved.isSuccess, "\(unit)")
        try await evening.stop()
      }
    }
  }
}

/// No machine is needed to read them.
@Suite("model units' texts") struct ModelUnitTextTests {
  @Test func thereAreSome() throws {
    let sources = try ModelUnit.all().map(\.source)
    #expect(sources.contains { $0.hasPrefix("README.md:") })
    #expect(sources.contains("systemd/pollerd.service"))
    #expect(sources.count >= 13)
  }

  @Test(arguments: try ModelUnit.all())
  func itIsStartedUntilItRuns(_ unit: ModelUnit) {
    #expect(unit.lines(of: "Unit", "StartLimit") == ["StartLimitIntervalSec=0"])
    #expect(!unit.lines(of: "Service", "RestartSec=").isEmpty)
    let order = unit.lines(of: "Unit", "After=")
    #expect(unit.isForAUser || order.contains { $0.contains("network.target") })
  }
}
