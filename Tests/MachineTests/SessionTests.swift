// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

/// A service of a user who lingers, and what logind says of that user's session.
@Suite("a user's service", .machines, .describesUnits) struct SessionTests {
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

    /// Waits for a beginning of `STATUS=`.
    func waitForStatus(_ prefix: String) async throws {
      let script = """
        id=$(id -u "$1")
        setpriv --reuid=$id --regid=$id --clear-groups env XDG_RUNTIME_DIR=/run/user/$id \\
          systemctl --user show --property=StatusText --value "$2" | grep -q "^$3"
        """
      try await machine.wait(until: script, user, name, prefix)
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

  /// PAM makes a session for a service, as it does for a login; on 252 not for one of Type=exec.
  private func login(_ user: UserService) async throws -> Service {
    let session = try await user.machine.service(
      "session", exec: "/bin/sleep infinity", type: "simple", "User=\(user.user)", "PAMName=login",
      "Environment=XDG_SESSION_CLASS=user XDG_SESSION_TYPE=wayland")
    try await session.start()
    return session
  }

  @Test(arguments: Release.selected)
  func isInTheForegroundWithAnUnlockedSession(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let user = try await UserService(machine, "--session")
      try await user.systemctl("start", user.name)
      // Not by a hook: where logind answers during the launch, the daemon is launched in the background.
      try await user.waitForStatus("background, session")
      let session = try await login(user)
      let resumed = try await user.waitForMessage("foreground: the session is active")
      let id = try await machine.expect(
        "loginctl", "show-user", "--property=Display", "--value", user.user)
      let answer = try await machine.expect(
        "busctl", "call", "org.freedesktop.login1", "/org/freedesktop/login1",
        "org.freedesktop.login1.Manager", "GetSession", "s", id)
      let path = try #require(answer.split(separator: "\"").last)  // o "/org/…"
      func setLocked(_ isLocked: Bool) async throws {
        try await machine.expect(
          "busctl", "call", "org.freedesktop.login1", String(path),
          "org.freedesktop.login1.Session", "SetLockedHint", "b", "\(isLocked)")
      }
      try await setLocked(true)
      let locked = try await user.waitForMessage(
        "background: the session is locked", after: resumed)
      #expect(try await user.show("StatusText").hasPrefix("background, session, since"))
      try await setLocked(false)
      let unlocked = try await user.waitForMessage(
        "foreground: the session is active", after: locked)
      try await session.stop()
      try await user.waitForMessage("background: the user has no session", after: unlocked)
    }
  }

  /// Two seconds on the user's bus, where a system service would be none.
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
