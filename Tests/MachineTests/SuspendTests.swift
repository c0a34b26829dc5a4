// SPDX-License-Identifier: Apache-2.0
import Testing

/// logind's sleep, real but for the last step: a fake /sys/power takes no time.
@Suite("suspend", .machines, .describesUnits) struct SuspendTests {
  /// `systemd-sleep` runs it when all locks are released, just before the machine sleeps.
  static let hook = """
    #!/bin/sh
    [ "$1" = pre ] || exit 0
    cat /run/saved >/run/saved-before-sleep
    """

  /// A machine of its own, in which a delay lock holds for a minute: longer than any test waits for a sleep.
  private func machine(
    _ release: Release, polkit: Bool = true, delay: Int = 60,
    _ body: (MachineTest) async throws -> Void
  ) async throws {
    try await release.test(on: .own(polkit: polkit)) { machine in
      try await machine.write(
        "/etc/systemd/logind.conf.d/delay.conf", "[Login]\nInhibitDelayMaxSec=\(delay)\n")
      try await machine.expect("systemctl", "restart", "systemd-logind")
      try await machine.write("/usr/lib/systemd/system-sleep/test", Self.hook, mode: "755")
      try await body(machine)
    }
  }

  private static let hasLock = "systemd-inhibit --list | grep -q 'ProbeService.* sleep .* delay'"

  /// polkit allows any user a delay lock, without a rule of the operator's. Twice: the lock of the second sleep is the one
  /// taken after the first.
  @Test(arguments: Release.selected, ["root", "daemon"])
  func stateIsSavedBeforeTheMachineSleeps(_ release: Release, _ user: String) async throws {
    try await machine(release) { machine in
      try await machine.write("/run/saved", "", mode: "666")
      let service = try await machine.lifecycle(
        "--slow=save:1 --state=/run/saved", "User=\(user)")
      try await service.start()
      var last: JournalEntry?
      for number in 1...2 {
        try await machine.wait(until: Self.hasLock)
        try await machine.expect("systemctl", "suspend")
        // The lock was released at once after the hooks: else this would take a minute.
        let resume = try await service.waitForMessage("resume: the machine has woken", after: last)
        let saved = try await machine.read("/run/saved-before-sleep").split(separator: "\n")
        #expect(saved.count == number)
        #expect(saved.allSatisfy { $0.hasPrefix("saved: the machine is about to sleep") })
        last = try await service.waitForMessage("foreground: the machine has woken", after: resume)
        // logind refuses to sleep while it still says that it is about to.
        try await machine.wait(
          until: "systemctl show -P ActiveState systemd-suspend.service | grep inactive")
      }
      #expect(try await !service.show("StatusText").contains("no delay lock"))
    }
  }

  /// The stop's save takes the place of the suspend's, and the machine waits for that.
  @Test(arguments: Release.selected)
  func aStopInTheMidstStillSavesBeforeTheMachineSleeps(_ release: Release) async throws {
    try await machine(release) { machine in
      let service = try await machine.lifecycle(
        "--slow=background:1 --slow=save:1 --state=/run/saved")
      try await service.start()
      try await machine.wait(until: Self.hasLock)
      try await machine.expect("systemctl", "suspend")
      try await service.waitForMessage("background: the machine is about to sleep")
      try await service.stop()
      try await machine.wait(until: "test -s /run/saved-before-sleep")
      #expect(try await machine.read("/run/saved-before-sleep").hasPrefix("saved: SIGTERM"))
    }
  }

  @Test(arguments: Release.selected)
  func withoutPolkitTheHooksRunAllTheSame(_ release: Release) async throws {
    try await machine(release, polkit: false) { machine in
      let service = try await machine.lifecycle("", "User=daemon")
      try await service.start()
      try await service.waitForMessage("No delay lock: the machine's sleep does not wait")
      try await machine.expect("systemctl", "suspend")
      try await service.waitForMessage("save: the machine is about to sleep")
      try await service.waitForMessage("suspend: the machine is about to sleep")
      try await service.waitForMessage("foreground: the machine has woken up")
      try await service.wait("StatusText") {
        $0.hasPrefix("foreground since") && !$0.contains("no delay lock")
      }
    }
  }

  /// Its lock is one against the shutdown, too; root may have both. As it is over, the machine sleeps.
  @Test(arguments: Release.selected)
  func whatKeepsTheMachineAwakeDoes(_ release: Release) async throws {
    try await machine(release) { machine in
      let service = try await machine.lifecycle("--awake=/run/done")
      try await service.start()
      try await service.waitForMessage("awake")
      let lock =
        "systemd-inhibit --list | grep 'ProbeService.* \\(sleep:shutdown\\|shutdown:sleep\\).*writes a backup.*block'"
      try await machine.expect("sh", "-c", lock)
      try await machine.expect("sh", "-c", "! systemctl suspend --check-inhibitors=yes")
      try await machine.expect("touch", "/run/done")
      try await service.waitForMessage("not awake any more")
      try await machine.wait(until: "! \(lock)")
      try await machine.expect("systemctl", "suspend")
      try await service.waitForMessage("foreground: the machine has woken up")
    }
  }

  /// It is said once, and the work runs.
  @Test(arguments: Release.selected)
  func withoutTheRightWorkRunsAllTheSame(_ release: Release) async throws {
    try await machine(release, polkit: false) { machine in
      let service = try await machine.lifecycle("--awake=/run/done", "User=daemon")
      try await service.start()
      try await service.waitForMessage(
        "Work can't keep the machine from sleep: ")
      try await service.waitForMessage("awake")
      try await machine.expect("touch", "/run/done")
      try await service.waitForMessage("not awake any more")
    }
  }

  /// Restarted by an update, for instance, while the daemon starts.
  @Test(arguments: Release.selected)
  func aLogindThatComesLaterGrantsTheLocks(_ release: Release) async throws {
    try await machine(release) { machine in
      // Masked, since whoever asks for it on the bus starts it.
      try await machine.expect("systemctl", "mask", "--runtime", "--now", "systemd-logind.service")
      let service = try await machine.lifecycle("--slow=save:1 --state=/run/saved")
      try await service.start()
      try await service.wait("StatusText") {
        $0.contains("no delay lock: the machine's sleep does not wait for the hooks")
      }
      try await service.waitForMessage("No delay lock: the machine's sleep")
      try await machine.expect("systemctl", "unmask", "--runtime", "systemd-logind.service")
      try await machine.expect("systemctl", "start", "systemd-logind.service")
      try await machine.wait(until: Self.hasLock)
      try await service.wait("StatusText") { !$0.contains("no delay lock") }
      try await machine.expect("systemctl", "suspend")
      try await service.waitForMessage("foreground: the machine has woken up")
      #expect(
        try await machine.read("/run/saved-before-sleep").hasPrefix(
          "saved: the machine is about to sleep"))
    }
  }

  /// Of the ten seconds that the lock holds, nine count, and half of them are the save's.
  @Test(arguments: Release.selected)
  func aStuckPauseLeavesTimeForTheSave(_ release: Release) async throws {
    try await machine(release, delay: 10) { machine in
      let service = try await machine.lifecycle(
        "--stuck=background --slow=save:0.5 --state=/run/saved")
      try await service.start()
      try await machine.wait(until: Self.hasLock)
      try await machine.expect("systemctl", "suspend")
      try await service.waitForMessage("Woken up after the machine's sleep", within: .seconds(40))
      #expect(
        try await machine.read("/run/saved-before-sleep").hasPrefix(
          "saved: the machine is about to sleep"))
      let logind = try await machine.journal("--unit=systemd-logind")
      #expect(!logind.contains { $0.message.contains("inhibitor timeout is reached") })
    }
  }
}
