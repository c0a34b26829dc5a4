// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import Testing

/// All examples on one systemd, under the shipped units, for an hour: what wears out, tears, or is said and is not so.
///
///     WEAR_SECONDS=3000 SEED=1 .ci/prove wear
@Suite(
  "wear", .machines, .describesUnits,
  .enabled(
    if: Wear.seconds > 0,
    "It takes WEAR_SECONDS, and other packages: WEAR_SECONDS=3000 .ci/prove wear")
) struct WearTests {
  @Test(arguments: Release.since(254))
  func nothingWearsOut(_ release: Release) async throws {
    try await release.test(on: .own()) { machine in
      let wear = try await Wear(machine)
      do { try await wear.run() } catch {
        throw TestFailure(
          "SEED=\(SeededGenerator.chosen), event \(wear.number), \(wear.recent.suffix(10)): \(error)"
        )
      }
    }
  }
}

/// The daemons, a model of them, and ledgers of all that they do.
final class Wear {
  static let seconds = ProcessInfo.processInfo.environment["WEAR_SECONDS"].flatMap { Int($0) } ?? 0

  let machine: MachineTest
  var number = 0
  var recent: [String] = []
  var daemons: [Worn] = []
  let echod: EchodService
  var random = SeededGenerator(seed: SeededGenerator.chosen)
  var counts: [String: Int] = [:]
  var polls = PollLedger()
  var jobs = 0
  /// Of each daemon at each rest, while all live, and afterwards.
  var sights: (one: [[Sight]], many: [[Sight]]) = ([], [])
  /// What echod's clients would notice, for the time between two loads.
  var later: [WearEvent] = []
  var hasLoad = false

  init(_ machine: MachineTest) async throws {
    self.machine = machine
    try await machine.installWear()
    echod = try await machine.echod()
    try await machine.expect("systemctl", "stop", echod.socket.name)
    try await machine.write("/etc/queued/database", Self.database)
    let pollerd = try await machine.pollerd(config: Self.polling)
    daemons.append(
      Worn(
        program: .pollerd, service: pollerd,
        settings: (machine.pollerdConfig, Self.polling, "interval = x")))
    let config = "/etc/echod/\(machine.unique("echod")).conf"
    daemons.append(
      Worn(
        program: .echod, service: echod.service,
        settings: (config, "line-limit = 65536", "nonsense")))
    for name in ["queued@1", "queued@2"] {
      let service = try await machine.adopt(name + ".service")
      daemons.append(
        Worn(
          program: .queued, service: service,
          settings: ("/etc/queued/database", Self.database, "secret")))
    }
    for name in ["a", "b"] {
      let faster = """
        [Service]
        ExecStart=
        ExecStart=/usr/local/bin/standby --name %i --elect 'exec sh /etc/standby/elector' \
        --token-key create_revision --interval 0.05 /var/lib/standby/ledger
        """
      let service = try await machine.adopt("standby-lease@\(name).service", dropIns: [faster])
      daemons.append(Worn(program: .standby, service: service))
    }
    for daemon in daemons {
      try await machine.write(
        "/etc/systemd/system/\(daemon.service.name).d/clock.conf", Self.steppedClock)
    }
    try await machine.expect("systemctl", "daemon-reload")
    try await machine.expect(
      "sh", "-euc", Self.smallDisks, "sh", "/var/lib/pollerd-t\(machine.number)")
    for program in Worn.Program.allCases { try await replace(program) }
    try await echod.socket.start()
    for daemon in daemons { try await daemon.service.start() }
  }

  // MARK: The whole

  /// First all that a process survives, with one process of each from beginning to end; then everything.
  func run() async throws {
    let began = ContinuousClock.now
    let all = WearEvent.allCases.flatMap { event in
      Array(repeating: event, count: max(4, event.count * Self.seconds / 3000))
    }
    let half = WearEvent.allCases.filter(\.isSurvived).flatMap { event in
      all.filter { $0 == event }.dropFirst().enumerated().filter { $0.offset % 2 == 0 }.map(
        \.element)
    }
    var rest = all
    for event in half { rest.remove(at: rest.firstIndex(of: event) ?? 0) }
    for (deck, isFirst) in [(half, true), (rest, false)] {
      var deck = deck.shuffled(using: &random)[...]
      while !deck.isEmpty {
        try await chapter(deck.prefix(100), isFirst: isFirst)
        deck = deck.dropFirst(100)
      }
      try checkFlatness((isFirst ? sights.one : sights.many).last ?? [])
    }
    try await finish()
    try await printTable(ContinuousClock.now - began)
  }

  /// Events under a load of echod, and then, without it, those that its clients would notice.
  func chapter(_ events: ArraySlice<WearEvent>, isFirst: Bool) async throws {
    let began = try await machine.expect("date", "+@%s")
    let gate = "/run/wear-gate"
    try await machine.expect("rm", "-f", gate)
    let wait = "--do=for i in $(seq 450); do [ -e \(gate) ] && break; sleep .1; done"
    let load = Task { [machine, echod] in
      try await machine.load(
        echod, ["--clients=50", "--connectors=4"] + Array(repeating: wait, count: 10),
        within: .seconds(1200))
    }
    hasLoad = true
    do {
      for (index, event) in events.enumerated() {
        try await happen(event)
        if index % 20 == 19 || index == events.count - 1 { try await rest(isFirst) }
      }
    } catch {
      load.cancel()
      try await machine.put(gate, "")
      _ = try? await load.value
      throw error
    }
    try await machine.put(gate, "")
    let counted = try await load.value
    hasLoad = false
    for name in ["refused", "dropped", "bad", "unanswered", "failed", "stuck"]
    where counted[name] > 0 {
      throw TestFailure("echod's clients: \(counted.line)")
    }
    counts["lines echoed", default: 0] += counted["lines"]
    try await betweenLoads()
    try await checkJournal(since: began)
    print("wear: event \(number)")
    try await polls.read(daemons[0].service)
  }

  func betweenLoads() async throws {
    let kills = later.count { $0 == .kill }
    if kills > 0 {
      try await settle(1)
      let name = echod.service.name
      let kill =
        "until [ $(systemctl show -P NFileDescriptorStore \(name)) = 50 ]; do sleep .05; done;"
        + " systemctl kill --kill-whom=main --signal=KILL \(name)"
      let counted = try await machine.load(
        echod, ["--clients=50", "--quiesce"] + Array(repeating: "--do=" + kill, count: kills))
      guard counted["dropped"] + counted["bad"] + counted["refused"] + counted["failed"] == 0,
        counted["sent"] == counted["received"]
      else { throw TestFailure("echod's clients over kills: \(counted.line)") }
      daemons[1].hasEnded()
      counts["kills", default: 0] += kills
    }
    for event in later where event == .burst { try await burst(1) }
    later = []
    try await settle(1)
    // Whoever has left is in systemd's store no longer, and a pause is.
    try await echod.service.wait("NFileDescriptorStore", is: daemons[1].isPaused ? "1" : "0")
    if daemons[1].isPaused {
      try await daemons[1].service.kill("USR2")
      daemons[1].isPaused = false
      try await settle(1)
    }
  }

  func finish() async throws {
    for index in daemons.indices where daemons[index].isPaused {
      try await daemons[index].service.kill("USR2")
      daemons[index].isPaused = false
    }
    try await rest(false)
    try await machine.wait(
      until: "[ $(\(Self.psql) \"SELECT count(*) FROM jobs WHERE state = 'waiting'\") = 0 ]",
      within: .seconds(600))
    let done = try await sql(
      "SELECT count(*), count(DISTINCT job) FROM results; SELECT count(*) FROM jobs WHERE state = 'done' AND attempts = 0"
    )
    guard done == "\(jobs)|\(jobs)\n\(jobs)" else {
      throw TestFailure("of \(jobs) jobs there are \(done)")
    }
    for daemon in daemons { try await daemon.service.stopsWell() }
    try await polls.read(daemons[0].service)
    try await machine.checkLedger()
  }

  // MARK: Rests

  /// Waits until daemons are as the model says.
  func settle(_ indices: Int..., isRest: Bool = false) async throws {
    let deadline = ContinuousClock.now + .seconds(60)
    while true {
      let seen = try await Sight.of(indices.map { daemons[$0] }, on: machine)
      var difference = zip(indices, seen).lazy.compactMap { [daemons] index, sight in
        daemons[index].difference(from: sight, isRest: isRest).map {
          "\(daemons[index].service.name): \($0): \(sight)"
        }
      }.first
      if isRest { difference = difference ?? leaders(seen) }
      guard let difference else {
        for (index, sight) in zip(indices, seen) { daemons[index].settle(on: sight) }
        return
      }
      guard ContinuousClock.now < deadline else { throw TestFailure(difference) }
    }
  }
}
