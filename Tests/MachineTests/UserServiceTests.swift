// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

/// A service of a user who lingers.
@Suite("a user's service", .machines, .describesUnits) struct UserServiceTests {
  /// A user with a service manager, and `ProbeService lifecycle` in it.
  struct UserService {
    let machine: MachineTest
    let user: String
    let name: String

    init(_ machine: MachineTest, _ options: String, _ lines: String...) async throws {
      self.machine = machine
      user = machine.unique("alice")
      name = machine.unique("user-lifecycle") + ".service"
      try await machine.expect("useradd", "--create-home", user)
      try await machine.expect("loginctl", "enable-linger", user)
      let exec = "ExecStart=/opt/machine/bin/ProbeService lifecycle \(options)"
      try await machine.write(
        "/etc/systemd/user/\(name)",
        (["[Service]", "Type=\(machine.reloadingType("--user"))", exec] + lines).joined(
          separator: "\n"))
      try await machine.wait(until: #"test -S /run/user/$(id -u "$1")/bus"#, user)
    }

    @discardableResult func systemctl(_ arguments: String...) async throws -> String {
      let script = """
        id=$(id -u "$1"); shift
        exec setpriv --reuid=$id --regid=$id --clear-groups env XDG_RUNTIME_DIR=/run/user/$id \\
          systemctl --user "$@"
        """
      let output = try await machine.machine.run(
        ["sh", "-c", script, "sh", user] + arguments, within: .seconds(60))
      guard output.isSuccess else {
        throw TestFailure("systemctl --user \(arguments): \(output.text)")
      }
      return output.text
    }

    func show(_ property: String) async throws -> String {
      try await systemctl("show", "--property=\(property)", "--value", name)
    }

    @discardableResult
    func waitForMessage(
      _ prefix: String, after earlier: JournalEntry? = nil,
      at location: SourceLocation = #_sourceLocation
    ) async throws -> JournalEntry {
      try await machine.waitForJournal("_SYSTEMD_USER_UNIT=\(name)", at: location) { entry in
        earlier.map { entry.isAfter($0) } != false && entry.message.hasPrefix(prefix)
      }
    }
  }

  @Test(arguments: Release.selected)
  func readsItsTimeoutOverTheUsersBus(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let user = try await UserService(machine, "--stuck=terminate", "TimeoutStopSec=5")
      try await user.systemctl("start", user.name)
      try await user.systemctl("reload", user.name)
      try await user.systemctl("stop", user.name)
      // The hook had ten seconds of its own: so it was the budget that ended it, and not systemd.
      try await user.waitForMessage("exit ")
      #expect(try await user.show("Result") == "exit-code")
    }
  }

  /// Some distributions give a user's manager so little. It is stopped with all of its services, and then killed.
  @Test(arguments: Release.selected)
  func itsManagersTimeCounts(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let user = try await UserService(machine, "--stuck=terminate", "TimeoutStopSec=60")
      let manager = "user@$(id -u \(user.user)).service"
      try await machine.expect(
        "sh", "-euc",
        """
        mkdir -p /run/systemd/system/user@.service.d
        printf '[Service]\\nTimeoutStopSec=6\\n' >/run/systemd/system/user@.service.d/time.conf
        systemctl daemon-reload
        """)
      try await user.systemctl("start", user.name)
      try await user.systemctl("reload", user.name)
      try await machine.expect(
        "sh", "-c", "systemctl stop \(manager); rm -r /run/systemd/system/user@.service.d")
      // It has ended by itself, before its manager was killed.
      try await user.waitForMessage("exit ")
    }
  }

  @Test(arguments: Release.selected)
  func watchesUnitsOfItsOwnManager(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let needed = machine.unique("needed") + ".service"
      try await machine.write(
        "/etc/systemd/user/\(needed)", "[Service]\nExecStart=/bin/sleep infinity\n")
      let user = try await UserService(machine, "--watch=\(needed)")
      try await user.systemctl("start", needed)
      try await user.systemctl("start", user.name)
      try await user.waitForMessage("foreground: launch")
      try await user.systemctl("stop", needed)
      try await user.waitForMessage("background: \(needed) is")
      try await user.systemctl("start", needed)
      try await user.waitForMessage("foreground: \(needed) is active")
    }
  }
}
