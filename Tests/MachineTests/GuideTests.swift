// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import Testing

/// Each block of `systemd/README.md`, in order and as it stands there, on a Debian that has seen nothing else.
@Suite("guide", .machines, .describesUnits) struct GuideTests {
  @Test(arguments: Release.selected)
  func everyBlockRuns(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let run = try await GuideRun(machine)
      for block in try GuideBlock.all(of: "systemd/README.md") where !block.isRunElsewhere {
        try await run(block)
      }
      try await run.checkThatNothingIsLeft()
    }
  }
}

/// No machine is needed to read it.
@Suite("guide's text") struct GuideTextTests {
  /// What is not run in the machines is run by CI in another way; a third one would have to say how.
  @Test func twoBlocksAreRunElsewhere() throws {
    let blocks = try GuideBlock.all(of: "systemd/README.md")
    for block in blocks {
      #expect(["sh", "ini"].contains(block.language), "\(block)")
      #expect(block.note == nil || block.isForAUser || block.isRunElsewhere, "\(block)")
    }
    let elsewhere = blocks.filter(\.isRunElsewhere)
    #expect(
      elsewhere.map(\.lines.first) == [
        "swift build -c release --static-swift-stdlib --product pollerd \\",
        "runuser -u postgres -- createuser queued",
      ])
    #expect(elsewhere[0].note?.hasSuffix(": .ci/static runs this block") == true)
    #expect(elsewhere[1].note?.hasSuffix(": QueueProcessTests runs queued on one") == true)
    #expect(try Package.read(".ci/static").contains("systemd/README.md"))
  }

  /// `systemctl status` names the guide, at the path that the guide installs it to.
  @Test func everyUnitNamesItsDocumentation() throws {
    let folder = Package.root + "/systemd/"
    let names = try FileManager.default.subpathsOfDirectory(atPath: folder).filter { name in
      ["service", "socket", "target"].contains((name as NSString).pathExtension)
    }
    #expect(names.count == 11)
    let guide = try Package.read("systemd/README.md")
    for name in names {
      let lines = try Package.read("systemd/" + name).split(separator: "\n")
      let line = try #require(lines.first { $0.hasPrefix("Documentation=file:") }, "\(name)")
      let path = line.dropFirst("Documentation=file:".count)
      let target = path.replacing("%h", with: "~").replacing("/README.md", with: "")
      #expect(guide.contains("\ninstall -D -m 644 -t \(target) systemd/README.md\n"), "\(name)")
    }
  }
}

/// The catalogue that `journalctl --catalog` takes its explanations from.
@Suite("journal catalogue") struct CatalogTests {
  /// What the package's own code writes, apart from examples in comments.
  private static func identifiersInSources() throws -> Set<String> {
    let folder = Package.root + "/Sources"
    var found: Set<String> = []
    for name in try FileManager.default.subpathsOfDirectory(atPath: folder)
    where name.hasSuffix(".swift") {
      for line in try Package.read("Sources/" + name).split(separator: "\n")
      where !line.contains("///") {
        for match in line.matches(of: /"([0-9a-f]{32})"/) { found.insert(String(match.1)) }
      }
    }
    return found
  }

  @Test func itHasAnEntryForEachKindOfMessage() throws {
    let entries = try Package.read("systemd/catalog/daemonlifecycle.catalog")
      .components(separatedBy: "\n-- ").dropFirst()
    let identifiers = entries.map { String($0.prefix { $0 != "\n" }) }
    #expect(Set(identifiers).count == identifiers.count)
    let sources = try Self.identifiersInSources()
    #expect(sources.count >= 15)
    #expect(Set(identifiers) == sources)
    for entry in entries {
      let lines = entry.split(separator: "\n", omittingEmptySubsequences: false).dropFirst()
      #expect(lines.first?.hasPrefix("Subject: ") == true, "\(entry)")
      #expect(lines.dropFirst().first == "Defined-By: DaemonLifecycle", "\(entry)")
      #expect(lines.dropFirst(2).first == "", "\(entry)")
      #expect(
        entry.allSatisfy { $0.isNewline || $0.utf8.count > 1 || !$0.isWhitespace || $0 == " " })
    }
  }

  /// systemd reads it, and finds each field's value.
  @Test(.machines, .describesUnits, arguments: Release.selected)
  func journalctlExplains(_ release: Release) async throws {
    try await release.test { machine in
      try await machine.put(
        "/usr/local/lib/systemd/catalog/daemonlifecycle.catalog",
        try Package.read("systemd/catalog/daemonlifecycle.catalog"))
      let said = try await machine.run("journalctl", "--update-catalog")
      #expect(said.isSuccess && said.text == "")
      let listed = try await machine.expect("journalctl", "--list-catalog")
      for identifier in try Self.identifiersInSources() {
        #expect(listed.contains("\(identifier) DaemonLifecycle: "))
      }
      let probe = try await machine.lifecycle("--fail=reload")
      try await probe.start()
      try await probe.reload()
      let rejection = try await probe.waitForMessage("Reload rejected after ")
      #expect(rejection["LIFECYCLE_OBSERVER"] == "LifecycleProbe")
      #expect(rejection["LIFECYCLE_OUTCOME"] == "failed")
      #expect(try await machine.journal("_SYSTEMD_UNIT=\(probe.name)", "PRIORITY=3").count == 1)
      let shown = try await machine.expect(
        "journalctl", "--no-pager", "--catalog", "--unit=\(probe.name)", "--priority=err")
      #expect(shown.contains("Subject: The daemon has rejected a reload"))
      #expect(shown.contains("LifecycleProbe reported what is wrong"))
      #expect(shown.contains("systemctl reload '\(probe.name)'"))
    }
  }
}

/// One reader who follows the guide, on one machine.
private struct GuideRun {
  /// The package's, in the machine.
  private static let folder = "/share/package"
  private let machine: MachineTest
  private let pollerd: Service
  private let echod: EchodService
  private let a: Service
  private let b: Service
  private let worker: Service

  init(_ machine: MachineTest) async throws {
    self.machine = machine
    try Self.putPackage(into: machine)
    try await machine.expect(
      "sh", "-euc",
      """
      test ! -e /etc/sysusers.d
      useradd --create-home ann
      loginctl enable-linger ann
      systemctl start user@$(id -u ann)
      """)
    pollerd = try await machine.adopt("pollerd.service")
    echod = EchodService(
      service: try await machine.adopt("echod.service"),
      socket: try await machine.adopt("echod.socket"), port: 7777)
    (a, b) = (
      try await machine.adopt("standby@a.service"), try await machine.adopt("standby@b.service")
    )
    worker = try await machine.adopt("queued@1.service")
  }

  /// The package's folder as the guide's commands find it: the unit files, and what was built.
  private static func putPackage(into machine: MachineTest) throws {
    let package = machine.share + "/package"
    let files = FileManager.default
    try files.createDirectory(atPath: package + "/.build", withIntermediateDirectories: true)
    try files.copyItem(atPath: Package.root + "/systemd", toPath: package + "/systemd")
    for product in ["pollerd", "echod", "standby", "queued"] {
      try files.createSymbolicLink(
        atPath: package + "/.build/" + product,
        withDestinationPath: "/opt/machine/bin/" + product)
    }
  }

  func callAsFunction(_ block: GuideBlock) async throws {
    switch true {
    case block.language == "ini": try await edit(block)
    case block.isForAUser:
      try await machine.paste(block.text, in: Self.folder, asUser: true)
      if block.contains("enable --now") { try await checkUserService() }
    case block.contains("systemctl status pollerd"):
      try await machine.operate(block, pollerd, in: Self.folder)
    case block.contains("systemctl status 'standby@*'"): try await handOver(block)
    default: try await check(block, said: try await machine.paste(block.text, in: Self.folder))
    }
  }

  // MARK: What comes of it

  private func check(_ block: GuideBlock, said: String) async throws {
    switch true {
    case block.contains("enable --now pollerd"):
      try await pollerd.waitForMessage("poll 1 ")
      #expect(try await pollerd.show("UnitFileState") == "enabled")
      #expect(try await machine.expect("stat", "-c%U %a", "/var/lib/pollerd") == "pollerd 700")
      #expect(
        try await pollerd.show("Documentation") == "file:/usr/local/share/doc/pollerd/README.md")
      try await machine.expect("test", "-r", "/usr/local/share/doc/pollerd/README.md")
    case block.contains("journalctl --unit=pollerd --catalog"):
      for subject in [
        "The daemon has started", "The daemon is in the background",
        "The daemon has reloaded its configuration", "The daemon has stopped",
      ] {
        #expect(said.contains("Subject: " + subject), "\(said)")
      }
    case block.contains("systemd-inhibit"): #expect(said.contains("pollerd"), "\(said)")
    case block.contains("systemd-analyze security"):
      #expect(said.contains("Overall exposure level for pollerd.service: 0.2 "), "\(said)")
    case block.contains("enable --now echod.socket"):
      #expect(try await echod.socket.show("UnitFileState") == "enabled")
      let counts = try await machine.load(echod, ["--clients=5"])
      #expect(counts["lines"] >= 15 && counts["bad"] == 0)
    case block.contains("/dev/tcp"): #expect(said.hasPrefix("one\ntwo"), "\(said)")
    case block.contains("enable --now standby"):
      try await a.waitForMessage("a leads from 1")
      try await b.waitForMessage("b stands by at")
    case block.contains("enable --now queued"):
      try await worker.wait("StatusText") { $0.contains("jobs has failed") }
    case block.contains("systemctl reload 'queued@*'"):
      try await worker.wait("StatusText") { $0.contains("jobs has failed") }
      #expect(try await worker.show("NRestarts") == "0")
    default: break
    }
  }

  /// As `systemctl edit pollerd` saves it.
  private func edit(_ block: GuideBlock) async throws {
    try await machine.write("/home/ann/weather", "good day\n")
    try await machine.write("/etc/pollerd/pollerd.conf", "source = /run/weather\n")
    try await machine.write("/etc/systemd/system/pollerd.service.d/override.conf", block.text)
    try await machine.expect("systemctl", "daemon-reload")
    try await machine.expect("systemctl", "restart", "pollerd")
    try await pollerd.waitForEntry { $0.message.hasSuffix(" good day") }
  }

  private func checkUserService() async throws {
    try await machine.waitForJournal("_SYSTEMD_USER_UNIT=pollerd.service") {
      $0.message.hasPrefix("poll 1 ")
    }
    try await machine.paste("systemctl --user reload pollerd", in: Self.folder, asUser: true)
    try await machine.waitForJournal("_SYSTEMD_USER_UNIT=pollerd.service") {
      $0.message.hasPrefix("settings: ")
    }
    try await machine.paste(
      """
      echo 'interval = soon' >~/.config/pollerd/pollerd.conf
      ! systemctl --user reload pollerd
      """, in: Self.folder, asUser: true)
  }

  /// Line by line too, as each takes a moment to have its effect.
  private func handOver(_ block: GuideBlock) async throws {
    for line in block.lines {
      try await machine.paste(line, in: Self.folder)
      switch true {
      case line.contains("start standby-b.target"): try await b.waitForMessage("b leads from")
      case line.contains("stop standby@b"):
        let first = try await a.waitForMessage("a stands by at 0")
        let led = try await a.waitForMessage("a leads from", after: first)
        try await a.waitForMessage("a leads from", after: led)
      default: break
      }
    }
    // Stopping the target does not wait for its parts.
    for instance in [a, b] { try await instance.wait("ActiveState", is: "inactive") }
  }

  func checkThatNothingIsLeft() async throws {
    let left = try await machine.expect(
      "find", "/etc", "/usr/local", "/var/lib", "/home/ann", "(", "-iname", "*pollerd*", "-o",
      "-iname", "*echod*", "-o", "-iname", "*standby*", "-o", "-iname", "*queued*", "-o", "-iname",
      "*daemonlifecycle*", ")")
    #expect(left == "")
    let users = try await machine.read("/etc/passwd")
    for name in ["pollerd", "echod", "standby", "queued"] { #expect(!users.contains("\n\(name):")) }
    #expect(!(try await machine.expect("journalctl", "--list-catalog")).contains("DaemonLifecycle"))
  }
}
