// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

/// What happens to them. Those up to `clock` cost no process its life.
enum WearEvent: String, CaseIterable {
  case burst = "bursts of signals"
  case reload = "reloads"
  case refusal = "reloads of bad files"
  case journald = "restarts of journald"
  case bus = "restarts of bus and logind"
  case logind = "restarts of logind"
  case database = "restarts of the database"
  case etcd = "restarts of etcd"
  case daemonReload = "daemon-reload"
  case daemonReexec = "daemon-reexec"
  case clock = "clock steps"
  case restart = "restarts"
  case kill = "kills"
  case upgrade = "upgrades"
  case disk = "full disks"

  /// How many of them are in 3000 seconds.
  var count: Int {
    switch self {
    case .burst: 500
    case .reload, .refusal: 1000
    case .restart: 500
    case .kill: 200
    case .upgrade: 40
    case .daemonReload, .daemonReexec, .clock: 60
    case .journald, .bus, .logind, .database, .etcd, .disk: 30
    }
  }
  var isSurvived: Bool { ![.restart, .kill, .upgrade, .disk].contains(self) }
  static let signals = 15_000

  /// Of those that are a command.
  var command: String {
    switch self {
    case .journald: "systemctl restart systemd-journald"
    // logind does not take up a lost bus again by itself.
    case .bus: "systemctl restart dbus.service; systemctl restart systemd-logind"
    case .logind: "systemctl restart systemd-logind"
    case .database: "systemctl restart 'postgresql@*'"
    case .etcd: "systemctl restart etcd.service"
    default: "systemctl \(rawValue)"  // daemon-reload, daemon-reexec
    }
  }
}

/// What happens to the daemons of the wear, and what is compared afterwards.
extension Wear {
  func happen(_ event: WearEvent) async throws {
    number += 1
    let index = random.below(daemons.count)
    recent.append("\(event.rawValue) (\(daemons[index].service.name))")
    switch event {
    case .burst: try await burst(index)
    // Of those that have settings.
    case .reload: try await reload(random.below(4))
    case .refusal: try await refuse(random.below(4))
    case .restart: try await restart(index)
    case .kill: try await kill(index)
    case .upgrade: try await upgrade()
    case .disk: try await fillDisks()
    case .clock: try await machine.stepClock(by: random.below(200_000) - 100_000)
    default: try await manage(event.command, index)
    }
    if event != .kill && event != .burst { counts[event.rawValue, default: 0] += 1 }
    if number % 4 == 0 { try await addJobs() }
  }

  /// A command, as an administrator gives it: half of the time amid signals.
  func manage(_ command: String, _ index: Int) async throws {
    let beside = Task { [machine] in try await machine.expect("sh", "-euc", command) }
    let result: Result<Void, any Error>
    do { result = .success(random.chance(50) ? try await burst(index) : ()) } catch {
      result = .failure(error)
    }
    _ = try await beside.value
    try result.get()
  }

  /// The last signal of one decides whether it is paused. Not of echod while it has clients: a pause sends them away.
  func burst(_ index: Int) async throws {
    try await settle(index)
    let isServing = hasLoad && daemons[index].program == .echod
    if isServing, random.chance(50) { later.append(.burst) }
    let pauses = !isServing && random.chance(50)
    let (count, last) = (WearEvent.signals / 3 * 3, pauses ? "USR1" : "USR2")
    try await machine.storm(
      daemons[index].pid, count, of: isServing ? ["USR2", "HUP"] : ["USR1", "USR2", "HUP"],
      last: last,
      seed: random.below(1 << 30))
    counts["signals", default: 0] += count + 1
    counts[WearEvent.burst.rawValue, default: 0] += 1
    daemons[index].isPaused = pauses
    daemons[index].reload = "reloaded "
    try await settle(index)
  }

  func reload(_ index: Int) async throws {
    try await settle(index)
    try await daemons[index].service.reload()
    daemons[index].reload = "reloaded "
    try await settle(index)
  }

  /// Half of them are refused by the check, of which the daemon hears nothing; of the others it says so.
  func refuse(_ index: Int) async throws {
    guard let settings = daemons[index].settings else { return }
    // So that what it says next is new.
    try await reload(index)
    // Nor is it another's that systemd starts again meanwhile.
    for other in daemons.indices where daemons[other].settings?.path == settings.path {
      try await settle(other)
    }
    try await machine.put(settings.path, settings.bad)
    if random.chance(50) {
      let said = try await daemons[index].service.systemctl("reload")
      guard said.exit == .status(1) else { throw TestFailure("a bad file was taken: \(said.text)") }
    } else {
      try await daemons[index].service.kill("HUP")
      daemons[index].reload = "reload rejected "
    }
    try await settle(index)
    try await machine.put(settings.path, settings.good)
  }

  /// Half of the time in the midst of a reload's save.
  func restart(_ index: Int) async throws {
    if random.chance(50) {
      try await settle(index)
      try await interrupt(index, "HUP")
    }
    try await daemons[index].service.restart()
    daemons[index].hasEnded()
  }

  func kill(_ index: Int) async throws {
    guard daemons[index].program != .echod else { return later.append(.kill) }
    try await settle(index)
    try await interrupt(index, "HUP", "KILL")
    daemons[index].hasEnded()
    counts[WearEvent.kill.rawValue, default: 0] += 1
    if daemons[index].program == .pollerd { polls.mayGoBack += 1 }
  }

  /// Sends signals, up to 3 ms apart.
  func interrupt(_ index: Int, _ signals: String...) async throws {
    let script =
      #"my ($pid, $time, @names) = @ARGV; kill($_, $pid) && select(undef, undef, undef, $time) for @names"#
    let time = "\(Double(random.below(3000)) / 1e6)"
    _ = try await machine.machine.run(
      ["perl", "-e", script, "\(daemons[index].pid)", time] + signals, within: .seconds(10))
    counts["signals", default: 0] += signals.count
  }

  /// Of one program after the other.
  func upgrade() async throws {
    let programs = Worn.Program.allCases
    let program = programs[counts[WearEvent.upgrade.rawValue, default: 0] % programs.count]
    try await replace(program)
    for index in daemons.indices where daemons[index].program == program {
      try await restart(index)
    }
  }

  /// As a package does it: who runs goes on with a program that has no name any more.
  func replace(_ program: Worn.Program) async throws {
    let path = "/usr/local/bin/\(program)"
    try await machine.expect("cp", "/opt/machine/bin/\(program)", path + ".new")
    try await machine.expect("mv", path + ".new", path)
  }

  /// A stop on a full disk says whether it has saved, and a leader that can't write ends; with room all is well again.
  func fillDisks() async throws {
    for index in [0, 4, 5] { try await settle(index) }
    let folders = ["/var/lib/pollerd-t\(machine.number)", "/var/lib/standby"]
    let now = try await machine.expect("date", "+@%s")
    for folder in folders {
      // cat ends with an error when there is no room.
      _ = try await machine.shell("cat /dev/zero >$1/filler 2>&1", folder)
    }
    let pollerd = daemons[0].service
    try await pollerd.stop()
    let status = try await pollerd.show("ExecMainStatus")
    guard ["0", "70"].contains(status) else {
      throw TestFailure("pollerd has ended with \(status)")
    }
    if status == "70" {
      counts["saves refused", default: 0] += 1
      polls.mayGoBack += 1
    }
    daemons[0].isPaused = false
    if daemons[4...].contains(where: { !$0.isPaused }) {
      let (a, b) = ("--unit=\(daemons[4].service.name)", "--unit=\(daemons[5].service.name)")
      try await machine.waitForJournal("--since=\(now)", a, b) {
        $0.message.contains("No space left")
      }
    }
    for folder in folders { try await machine.expect("rm", folder + "/filler") }
    try await pollerd.start()
    daemons[0].hasEnded()
    // Those that were paused have not tried to write; of the others it is seen who has ended.
    for index in [4, 5] where !daemons[index].isPaused {
      (daemons[index].isUnsure, daemons[index].pid, daemons[index].formerPID) = (true, 0, 0)
    }
    try await settle(4, 5, isRest: true)
  }

  func addJobs() async throws {
    let (count, words) = (random.below(4) + 1, random.below(2) + 1)
    _ = try await sql(
      "INSERT INTO jobs (payload) SELECT repeat('word ', \(words)) FROM generate_series(1, \(count))"
    )
    jobs += count
  }

  func sql(_ statement: String) async throws -> String {
    try await machine.expect("sh", "-c", "\(Self.psql) \"$1\"", "sh", statement)
  }

  // MARK: Rests

  func rest(_ isFirst: Bool) async throws {
    for index in daemons.indices { try await settle(index) }
    try await settle(0, 1, 2, 3, 4, 5, isRest: true)
    let seen = try await Sight.of(daemons, on: machine)
    if isFirst { sights.one.append(seen) } else { sights.many.append(seen) }
    counts["rests", default: 0] += 1
  }

  /// One of those that are not paused works.
  func leaders(_ seen: [Sight]) -> String? {
    let expected = daemons[4...].contains { !$0.isPaused } ? 1 : 0
    let leaders = seen.suffix(2).count { $0["StatusText"].hasPrefix("foreground") }
    return leaders == expected
      ? nil : "\(leaders) standbys work, and not \(expected): \(seen.suffix(2))"
  }

  /// Each daemon has what it had in the first third of its one life, when it was warm.
  func checkFlatness(_ seen: [Sight]) throws {
    let warm = sights.one.prefix(max(1, sights.one.count / 3))
    for (index, (daemon, last)) in zip(daemons, seen).enumerated() {
      func most(_ field: String) -> Int { warm.map { $0[index].number(field) }.max() ?? 0 }
      let memory = most("VmRSS")
      let isFlat =
        last.number("VmRSS") <= max(memory + memory / 10, memory + 2048)
        // Echod has clients that come and go, and queued a connection.
        && last.number("descriptors") <= most("descriptors") + 4
        // One more or less in a pool of threads is no growth.
        && last.number("Threads") <= most("Threads") + 4
      if !isFlat {
        throw TestFailure(
          "\(daemon.service.name) has grown to \(last): \(sights.one.map { $0[index] })")
      }
    }
  }

  /// Nothing has crashed, was too late, or was given up.
  func checkJournal(since time: String) async throws {
    let script = #"""
      journalctl --sync; journalctl --quiet --since=$1 --output=short-precise \
        --grep="code=dumped|Watchdog timeout|timed out. Killing|result '(timeout|watchdog)'|Fatal error|abandoned"
      """#
    let found = try await machine.shell(script, time, within: .seconds(300)).text
    if !found.isEmpty { throw TestFailure("the journal has: \(found.prefix(2000))") }
  }

  /// As it stands in TESTING.md.
  func printTable(_ time: Duration) async throws {
    let lines = try await machine.expect("sh", "-c", "wc -l </var/lib/standby/ledger")
    counts["polls, none lost or doubled"] = polls.last
    counts["jobs, each done once"] = jobs
    counts["lines of the ledger, none lost or doubled"] = Int(lines)
    counts["seconds"] = Int(time / .seconds(1))
    let names = WearEvent.allCases.map(\.rawValue)
    let others = counts.keys.filter { !names.contains($0) }.sorted()
    for (index, daemon) in daemons.enumerated() {
      print("wear: kB of \(daemon.service.name): \(sights.one.map { $0[index].number("VmRSS") })")
    }
    print("\n| what | number |\n| --- | --- |")
    for name in names + others { print("| \(name) | \(counts[name] ?? 0) |") }
    print(
      "\n| one life of | kB: first, last, most | descriptors | threads | kB of all lives: most |")
    print("| --- | --- | --- | --- | --- |")
    for (index, daemon) in daemons.enumerated() {
      let columns = ["VmRSS", "descriptors", "Threads"].map { field in
        let values = sights.one.map { $0[index].number(field) }
        return "\(values.first ?? 0), \(values.last ?? 0), \(values.max() ?? 0)"
      }
      let most = sights.many.map { $0[index].number("VmRSS") }.max() ?? 0
      print("| \(daemon.service.name) | \(columns.joined(separator: " | ")) | \(most) |")
    }
  }
}

// MARK: - The machine

extension Wear {
  static let database = "host=/run/postgresql dbname=queue"
  static let polling = "interval = 0.02"
  static let psql = "runuser -u queued -- psql -XAtq queue -c"
  static let steppedClock = "[Service]\nEnvironment=LD_PRELOAD=/opt/machine/bin/clock.so\n"
  /// With a state, and a ledger that lasts as long as the wear.
  static let smallDisks = """
    mkdir -p "$1" /var/lib/standby
    mount -t tmpfs -o size=64k,mode=700,uid=$(id -u pollerd),gid=$(id -g pollerd) pollerd "$1"
    mount -t tmpfs -o size=16m,mode=700,uid=$(id -u standby),gid=$(id -g standby) standby /var/lib/standby
    """
}

extension MachineTest {
  /// All but echod and pollerd, which have names of their own.
  func installWear() async throws {
    try await installExample("queued", units: "queued@.service")
    try await installStandbyFiles()
    try await put(
      "/etc/standby/elector",
      """
      export ETCDCTL_ENDPOINTS=http://127.0.0.1:2379
      etcdctl get standby >/dev/null && exec etcdctl lock -w json --ttl=5 standby
      """)
    try await stepClock(by: 0)
    try await expect("systemctl", "start", "etcd.service", "postgresql.service")
    try await expect(
      "sh", "-euc",
      """
      cd /
      runuser -u postgres -- createuser queued
      runuser -u postgres -- createdb --owner=queued queue
      queued --schema | runuser -u queued -- psql -q queue
      """)
  }

  /// Of the daemons that have been started since with `clock.so`.
  func stepClock(by seconds: Int) async throws {
    let script =
      #"open(my $file, -e $ARGV[0] ? "+<" : ">", $ARGV[0]) or die; syswrite($file, pack("q", $ARGV[1])) or die"#
    try await expect("perl", "-e", script, "/etc/clock-step", "\(seconds)")
  }
}
