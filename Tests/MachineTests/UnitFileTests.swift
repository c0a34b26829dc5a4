// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import Testing

/// What `systemd/` ships, as systemd itself judges it.
@Suite("unit files", .machines, .describesUnits) struct UnitFileTests {
  /// 252 warns of lines that it does not know; the guide tells.
  @Test(arguments: Release.since(253))
  func areVerified(_ release: Release) async throws {
    try await release.test { machine in
      try await machine.installAllFiles()
      for unit in [
        "pollerd.service", "pollerd@one.service", "echod.service", "echod.socket",
        "standby@a.service", "standby-lease@a.service", "standby-a.target", "standby-b.target",
        "standby.target",
        "queued@1.service",
      ] {
        let said = try await machine.run("systemd-analyze", "verify", unit)
        #expect(said.isSuccess && said.text == "")
      }
      try await machine.write(
        "/etc/systemd/user/pollerd.service", try Package.read("systemd/user/pollerd.service"))
      try await machine.write("/root/.local/bin/pollerd", "", mode: "755")
      let said = try await machine.shell(
        "XDG_RUNTIME_DIR=/tmp systemd-analyze --user verify /etc/systemd/user/pollerd.service")
      #expect(said.isSuccess && said.text == "")
    }
  }

  @Test(arguments: Release.selected)
  func exposeLittle(_ release: Release) async throws {
    try await release.test { machine in
      try await machine.installAllFiles()
      try await machine.expect("systemctl", "daemon-reload")
      for (unit, most) in [
        ("pollerd.service", 0.3), ("pollerd@one.service", 0.3), ("echod.service", 0.7),
        ("standby@a.service", 0.7), ("standby-lease@a.service", 1.3), ("queued@1.service", 1.3),
      ] {
        let said = try await machine.expect("systemd-analyze", "security", "--no-pager", unit)
        let verdict = try #require(said.split(separator: "\n").last)
        let words = verdict.split(separator: " ")
        let exposure = try #require(words.lazy.compactMap { Double($0) }.first)
        #expect(exposure <= most, "\(verdict)")
      }
    }
  }

  /// With a stand-in for pollerd: what the sandbox lets through, and what it does not.
  @Test(arguments: Release.selected)
  func theSandboxHasWhatItNeeds(_ release: Release) async throws {
    try await release.test { machine in
      try await machine.write("/usr/local/lib/t\(machine.number)", Self.standIn, mode: "755")
      try await machine.write("/etc/credstore/pollerd.token", "secret", mode: "600")
      let pollerd = try await machine.pollerd(
        "Type=notify", "NotifyAccess=all", "ExecStart=",
        "ExecStart=/usr/local/lib/t\(machine.number)")
      try await pollerd.start()
      #expect(try await pollerd.show("StatusText") == "done")
      let findings = try await pollerd.journal().map(\.message).filter { $0.hasPrefix("- ") }
      #expect(findings == Self.findings(on: release))
    }
  }

  /// Each line says what has worked. The write to the pressure file is what asks for its events.
  private static let standIn = #"""
    #!/bin/sh
    has() { name=$1; shift; "$@" >/dev/null 2>&1 && echo "- $name"; }
    has loadavg cat /proc/loadavg
    has pressure cat /proc/pressure/memory
    has state sh -c 'echo 1 >"$STATE_DIRECTORY/count"'
    has bus busctl get-property org.freedesktop.systemd1 /org/freedesktop/systemd1/unit/self \
      org.freedesktop.systemd1.Service TimeoutStopUSec
    has logind busctl get-property org.freedesktop.login1 /org/freedesktop/login1 \
      org.freedesktop.login1.Manager InhibitDelayMaxUSec
    has lock systemd-inhibit --what=sleep --mode=delay true
    has credential grep -qx secret "$CREDENTIALS_DIRECTORY/pollerd.token"
    has memory sh -c '[ -w "$MEMORY_PRESSURE_WATCH" ] && exec 3<>"$MEMORY_PRESSURE_WATCH"'
    has etc sh -c 'echo 1 >/etc/pollerd/here'
    has lib sh -c 'echo 1 >/var/lib/here'
    has homes ls /root
    has processes ls /proc/1/stat
    has cgroups mkdir /sys/fs/cgroup/here
    has devices ls /dev/kmsg
    has network busybox httpd -p 127.0.0.1:8080
    systemd-notify --ready --status=done
    exec sleep infinity
    """#

  private static func findings(on release: Release) -> [String] {
    var names = ["loadavg", "pressure", "state", "bus", "logind", "lock", "credential"]
    if release.systemd >= 254 { names.append("memory") }
    return names.map { "- " + $0 }
  }
}

/// No machine is needed to compare them.
@Suite("unit files' texts") struct UnitFileTextTests {
  /// The template is the service, for NAME.
  @Test func theTemplateIsTheService() throws {
    let template = try Self.directives("systemd/pollerd@.service")
    let service = try Self.directives("systemd/pollerd.service").map {
      switch $0 {
      case "StateDirectory=pollerd": "StateDirectory=pollerd-%i"
      case let line where line.hasPrefix("Description="):
        line.replacingOccurrences(of: "Pollerd", with: "Pollerd %i")
      case let line: line.replacingOccurrences(of: "pollerd.conf", with: "%i.conf")
      }
    }
    #expect(template == service)
  }

  /// All that is stored is passed at once, and one too many is exit status 202.
  @Test func echodMayOpenMoreThanItStores() throws {
    let lines = try Self.directives("systemd/echod.service")
    func number(_ key: String) throws -> Int {
      let line = try #require(lines.first { $0.hasPrefix(key) })
      return try #require(Int(line.dropFirst(key.count)))
    }
    #expect(try number("LimitNOFILE=") > number("FileDescriptorStoreMax=") + 100)
    #expect(lines.contains("StartLimitIntervalSec=0"))
  }

  /// Without it, a signal goes to every process of the unit.
  @Test func everyKillNamesTheMainProcess() throws {
    for file in [
      "systemd/README.md", "systemd/pollerd.service", "systemd/echod.service",
      "systemd/user/pollerd.service",
    ] {
      let lines = try Package.read(file).split(separator: "\n").filter {
        $0.contains("systemctl") && $0.contains(" kill ")
      }
      #expect(!lines.isEmpty)
      for line in lines { #expect(line.contains("--kill-whom=main"), "\(file)") }
    }
  }

  private static func directives(_ path: String) throws -> [String] {
    try Package.read(path).split(separator: "\n").map(String.init).filter { !$0.hasPrefix("#") }
  }
}

extension MachineTest {
  fileprivate func installAllFiles() async throws {
    try await installPollerdFiles()
    try await installEchodFiles()
    try await installStandbyFiles()
    try await installExample("queued", units: "queued@.service")
  }
}
