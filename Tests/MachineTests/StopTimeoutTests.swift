// SPDX-License-Identifier: Apache-2.0
import Testing

/// `TimeoutStopSec=` is read over the bus: nothing in the environment says how long a stop may take.
@Suite("the time for a stop", .machines, .describesUnits) struct StopTimeoutTests {
  /// Asked after the timeout was, and so are reloads: when both are done, the timeout is known.
  private func untilTheBusHasAnswered(_ machine: MachineTest, _ service: Service) async throws {
    let pid = try await service.mainPID
    try await machine.wait(until: "systemd-inhibit --list | grep -q ' \(pid) .*sleep'")
    try await service.reload()
  }

  /// Without a bus, as with `DynamicUser=`: the stuck hook has longer than systemd would wait, also after a
  /// daemon-reload, which makes systemd forget what it was asked for.
  @Test(arguments: Release.selected)
  func aTimeoutThatIsUnknownCostsNoSave(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let short = try await machine.lifecycle(
        "--stuck=background --deadline=8", named: "short", "TimeoutStopSec=5", "DynamicUser=yes")
      try await short.start()
      try await machine.expect("systemctl", "stop", "--no-block", short.name)
      try await short.waitForStatus { $0.contains(", 6") }
      try await machine.expect("systemctl", "daemon-reload")
      try await short.wait("ActiveState", is: "failed")
      #expect(try await short.show("ExecMainStatus") == "124")
      try await short.waitForMessage("save: SIGTERM")
      try await short.waitForMessage("entry LifecycleProbe, DidEnterBackground: abandoned")
    }
  }

  /// systemd is away from the bus for a moment, several times, while the services start and ask it. A hook that hangs has
  /// a minute of its own: that the stop ends in time with the state saved shows that all have learnt the timeout.
  @Test(arguments: Release.selected)
  func isLearntThoughSystemdIsReexecutedMeanwhile(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      var services: [Service] = []
      for number in 1...8 {
        services.append(
          try await machine.lifecycle(
            "--stuck=background --deadline=60 --state=/run/saved-\(number)",
            named: "lifecycle-\(number)", "TimeoutStopSec=20"))
      }
      let names = services.map(\.name).joined(separator: " ")
      // systemctl waits until systemd is back.
      try await machine.expect(
        "sh", "-euc",
        "systemctl start --no-block \(names); for i in 1 2 3 4; do systemctl daemon-reexec; done")
      for service in services { try await service.wait("ActiveState", is: "active") }
      try await machine.expect("sh", "-c", "systemctl stop \(names)")
      for (index, service) in services.enumerated() {
        #expect(try await service.show("ExecMainStatus") == "124")
        #expect(try await machine.read("/run/saved-\(index + 1)").hasPrefix("saved: SIGTERM"))
      }
    }
  }

  private func change(_ service: Service, on machine: MachineTest, to seconds: Int) async throws {
    try await machine.expect(
      "sh", "-euc",
      """
      mkdir -p /run/systemd/system/\(service.name).d
      printf '[Service]\\nTimeoutStopSec=\(seconds)\\n' >/run/systemd/system/\(service.name).d/time.conf
      systemctl daemon-reload
      """)
  }

  /// Also one that gives it more time: a hook has it that five seconds would have cut off.
  @Test(arguments: Release.selected)
  func moreTimeCountsToo(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let service = try await machine.lifecycle(
        "--slow=background:9 --deadline=60", named: "longer", "TimeoutStopSec=5")
      try await service.start()
      try await untilTheBusHasAnswered(machine, service)
      try await change(service, on: machine, to: 30)
      try await service.stop()
      #expect(try await service.show("Result") == "success")
      #expect(try await service.lines("background done") == 1)
    }
  }

  /// A change of the unit applies to the running service, whose budget was another when it started.
  @Test(arguments: Release.selected)
  func aChangeOfTheUnitCounts(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let service = try await machine.lifecycle(
        "--stuck=background --deadline=60 --state=/run/saved-changed", named: "changed",
        "TimeoutStopSec=30")
      try await service.start()
      try await untilTheBusHasAnswered(machine, service)
      try await change(service, on: machine, to: 6)
      try await service.stop()
      #expect(try await service.show("ExecMainStatus") == "124")
      #expect(try await machine.read("/run/saved-changed").contains("saved: SIGTERM"))
    }
  }

  /// Also while it stops: systemd counts from the stop's begin, and kills at once where more has passed.
  @Test(arguments: Release.selected, [0, 6])
  func lessTimeForAStopThatDrainsCostsNoSave(_ release: Release, passed: Int) async throws {
    try await release.test(on: .own()) { machine in
      let service = try await machine.lifecycle(
        "--delay=60 --deadline=60 --state=/run/saved-less", named: "less", "TimeoutStopSec=40")
      try await service.start()
      try await untilTheBusHasAnswered(machine, service)
      try await machine.expect(
        "sh", "-euc", "systemctl stop --no-block \(service.name); sleep \(passed)")
      try await change(service, on: machine, to: 4)
      try await service.wait("ActiveState", is: "inactive")
      #expect(try await service.show("Result") == "success")
      #expect(try await machine.read("/run/saved-less").contains("saved: SIGTERM"))
    }
  }

  /// A drain of 1.8 s is one of 3, and the hook after it has 6.
  @Test(arguments: Release.selected)
  func moreTimeForAStopThatDrainsCounts(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let service = try await machine.lifecycle(
        "--delay=3 --slow=background:6 --deadline=60", named: "more", "TimeoutStopSec=10")
      try await service.start()
      try await untilTheBusHasAnswered(machine, service)
      try await machine.expect("systemctl", "stop", "--no-block", service.name)
      try await change(service, on: machine, to: 60)
      try await service.wait("ActiveState", is: "inactive")
      #expect(try await service.show("Result") == "success")
      #expect(try await service.lines("background done") == 1)
    }
  }

  /// There is no end to count down to: then the hook's own deadline is what counts.
  @Test(arguments: Release.selected)
  func infinityIsNoNumber(_ release: Release) async throws {
    try await release.test { machine in
      let service = try await machine.lifecycle(
        "--stuck=background --deadline=1", "TimeoutStopSec=infinity")
      try await service.start()
      try await untilTheBusHasAnswered(machine, service)
      try await service.stop()
      #expect(try await service.show("ExecMainStatus") == "124")
      try await service.waitForMessage("save: SIGTERM")
      try await service.waitForMessage("entry LifecycleProbe, DidEnterBackground: abandoned")
    }
  }
}
