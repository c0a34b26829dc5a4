// SPDX-License-Identifier: Apache-2.0
import Testing

/// The bus in all the ways in which it may be missing, and what else may be restarted meanwhile.
@Suite("the bus", .machines, .describesUnits) struct BusTests {
  // MARK: None

  enum Lack: String, CaseIterable {
    case bus = "InaccessiblePaths=/run/dbus"
    /// The classic dbus-daemon hangs up on users that it can't look up.
    case known = "DynamicUser=yes"
    case library = "InaccessiblePaths="
  }

  /// Everything that needs no bus works, and the journal says once what is missing.
  @Test(arguments: Release.selected, Lack.allCases)
  func worksWithout(_ release: Release, _ lack: Lack) async throws {
    try await release.test { machine in
      var setting = lack.rawValue
      if lack == .library {
        setting += try await machine.expect("sh", "-c", "realpath /usr/lib/*/libsystemd.so.0")
      }
      let what = lack == .library ? "libsystemd" : "There is no bus"
      let service = try await machine.lifecycle("--watch=a.service", setting)
      try await service.start()
      try await service.waitForEntry { $0.message.contains(what) && $0["_PID"] != "1" }
      try await service.kill("USR1")
      try await service.waitForMessage("save done")
      try await service.reload()
      try await service.waitForMessage("reload done")
      try await service.stopsWell()
      let said = try await service.journal()
      #expect(said.count { $0.message.contains(what) && $0["_PID"] != "1" } == 1)
    }
  }

  // MARK: Lost and back

  private static let hasLock = "systemd-inhibit --list | grep -q 'ProbeService.* sleep .* delay'"

  /// Units and the machine's sleep are heard of, now.
  private func hearsAll(
    _ machine: MachineTest, _ unit: Service, _ service: Service, after earlier: JournalEntry? = nil
  ) async throws -> JournalEntry {
    try await unit.start()
    try await service.wait("StatusText") { $0.hasPrefix("foreground since") }
    try await unit.stop()
    let paused = try await service.waitForMessage("background: \(unit.name)", after: earlier)
    try await unit.start()
    let resumed = try await service.waitForMessage("foreground: \(unit.name)", after: paused)
    try await machine.wait(until: Self.hasLock, within: .seconds(60))
    try await machine.expect("systemctl", "suspend")
    let asleep = try await service.waitForMessage("suspend: the machine", after: resumed)
    let awake = try await service.waitForMessage("foreground: the machine has woken", after: asleep)
    try await machine.wait(
      until: "systemctl show -P ActiveState systemd-suspend.service | grep inactive")
    return awake
  }

  /// logind does not take up a lost bus again by itself; whoever restarts the bus restarts logind.
  enum Disturbance: String, CaseIterable {
    case busRestart = "systemctl restart dbus.service && systemctl restart systemd-logind"
    case busKilled = """
      old=$(systemctl show -P MainPID dbus.service)
      systemctl kill --signal=KILL dbus.service
      until new=$(systemctl show -P MainPID dbus.service); [ $new != 0 ] && [ $new != $old ]; do
        busctl list
        sleep .05
      done
      systemctl restart systemd-logind
      """
    case logindRestart = "systemctl restart systemd-logind"
    case reload = "systemctl daemon-reload"
    case reexec = "systemctl daemon-reexec"
  }

  @Test(arguments: Release.selected, Disturbance.allCases)
  func isTakenUpAgain(_ release: Release, _ disturbance: Disturbance) async throws {
    try await release.test(on: .own()) { machine in
      let unit = try await machine.service("needed", exec: "/bin/sleep infinity")
      let service = try await machine.lifecycle("--watch=\(unit.name)")
      try await service.start()
      let before = try await hearsAll(machine, unit, service)
      try await machine.expect("sh", "-c", disturbance.rawValue)
      // Until the bus serves again, and those who are on it.
      try await machine.wait(
        until:
          "systemctl is-active dbus.service systemd-logind && busctl status org.freedesktop.login1"
          + " && busctl status org.freedesktop.systemd1", within: .seconds(60))
      _ = try await hearsAll(machine, unit, service, after: before)
      try await service.stopsWell()
    }
  }

  // MARK: Hanging

  /// Waiting for logind would last 25 s: longer than a start, a reload or a stop may take here.
  @Test(arguments: Release.selected)
  func aHangingLogindHoldsNothingUp(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let service = try await machine.lifecycle(
        "", "TimeoutStartSec=10", "TimeoutStopSec=10")
      let logind = try await machine.expect(
        "systemctl", "show", "--property=MainPID", "--value", "systemd-logind")
      try await machine.expect("sh", "-c", "kill -STOP \(logind)")
      try await service.start()
      try await service.reload()
      try await service.restart()
      #expect(try await machine.read("/proc/\(logind)/status").contains("State:\tT"))
      try await service.stopsWell()
      #expect(try await machine.read("/proc/\(logind)/status").contains("State:\tT"))
      try await service.start()
      try await machine.expect("sh", "-c", "kill -CONT \(logind)")
      try await machine.wait(until: Self.hasLock)
    }
  }

  /// As above, of what is on the way to everybody: only this machine's harness goes on without a bus.
  @Test(arguments: Release.selected)
  func aHangingBusHoldsNothingUp(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let service = try await machine.lifecycle("", "TimeoutStartSec=10", "TimeoutStopSec=10")
      let bus = try await machine.expect(
        "systemctl", "show", "--property=MainPID", "--value", "dbus.service")
      try await machine.expect("sh", "-c", "kill -STOP \(bus)")
      try await service.start()
      try await service.reload()
      try await service.stopsWell()
      try await machine.expect("sh", "-c", "kill -CONT \(bus)")
    }
  }
}
