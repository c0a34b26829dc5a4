// SPDX-License-Identifier: Apache-2.0
import Testing

/// A server whose restart no client notices, on the real systemd, with clients that check every byte.
@Suite("echod", .machines, .describesUnits) struct EchodTests {
  /// 20 restarts and 5 reloads under 200 clients in constant exchange, half of their lines in pieces, and 8 that keep
  /// connecting.
  @Test(arguments: Release.since(254))
  func restartsLoseNothing(_ release: Release) async throws {
    try await release.test { machine in
      let echod = try await machine.echod()
      let name = echod.service.name
      let plan = (1...5).flatMap { _ in
        Array(repeating: "--do=systemctl restart \(name)", count: 4)
          + ["--do=systemctl reload \(name)"]
      }
      let counts = try await machine.load(echod, ["--clients=200", "--connectors=8"] + plan)
      #expect(counts["refused"] == 0 && counts["dropped"] == 0)
      #expect(counts["bad"] == 0 && counts["unanswered"] == 0 && counts["failed"] == 0)
      #expect(counts["commands"] == 25 && counts["sent"] == counts["received"])
      print("\(release.testDescription): \(counts.line)")
      // Everybody has left, and nothing stays.
      try await echod.service.wait("NFileDescriptorStore", is: "0")
      let handed = try await echod.service.journal().filter {
        $0.message.hasPrefix("handed over ")
      }
      #expect(handed.count == 20)
    }
  }

  /// All that was sent before the stop is answered, then comes a clean end; then it can be started again.
  @Test(arguments: Release.selected)
  func aStopDrains(_ release: Release) async throws {
    try await release.test { machine in
      let echod = try await machine.echod()
      let counts = try await machine.load(
        echod, ["--clients=100", "--last=systemctl stop \(echod.service.name)"])
      #expect(counts["unanswered"] == 0 && counts["dropped"] == 0 && counts["bad"] == 0)
      #expect(counts["lines"] >= 100 * 50 && counts["failed"] == 0)
      #expect(try await echod.service.show("Result") == "success")
      try await echod.service.waitForMessage("finished 100 connections")
      #expect(try await echod.service.show("NFileDescriptorStore") == "0")
      let after = try await machine.load(echod, ["--clients=10"])
      #expect(after["lines"] >= 30 && after["bad"] == 0)
    }
  }

  /// So much that the server had stopped reading: it goes on where it was, until all is answered.
  @Test(arguments: Release.selected)
  func aStopAnswersSlowReaders(_ release: Release) async throws {
    try await release.test { machine in
      let echod = try await machine.echod()
      let counts = try await machine.load(
        echod, ["--clients=10", "--unread", "--last=systemctl stop \(echod.service.name)"])
      #expect(counts["unanswered"] == 0 && counts["dropped"] == 0 && counts["bad"] == 0)
      // More than the output's limit.
      #expect(counts["received"] > 10 * 262_144 && counts["failed"] == 0)
      try await echod.service.waitForMessage("finished 10 connections")
    }
  }

  /// An end, and no reset, which would take answers from those who have not read them.
  @Test(arguments: Release.selected)
  func aStopResetsNobody(_ release: Release) async throws {
    try await release.test { machine in
      let echod = try await machine.echod()
      let counts = try await machine.load(
        echod, ["--clients=100", "--through", "--last=systemctl stop \(echod.service.name)"])
      #expect(counts["dropped"] == 0 && counts["bad"] == 0 && counts["failed"] == 0)
      #expect(try await echod.service.show("Result") == "success")
    }
  }

  /// Nobody was there to say goodbye: what was half said is lost, and no connection.
  @Test(arguments: Release.since(254))
  func aKillKeepsTheConnections(_ release: Release) async throws {
    try await release.test { machine in
      let echod = try await machine.echod()
      // All that have lasted are kept: systemd has them soon.
      let kept = "until [ $(systemctl show -P NFileDescriptorStore \(echod.service.name)) = 50 ]"
      let kill =
        "\(kept); do sleep .05; done;"
        + " systemctl kill --kill-whom=main --signal=KILL \(echod.service.name)"
      let counts = try await machine.load(
        echod, ["--clients=50", "--quiesce", "--do=\(kill)", "--do=\(kill)"])
      #expect(counts["dropped"] == 0 && counts["bad"] == 0 && counts["refused"] == 0)
      #expect(counts["sent"] == counts["received"])
      #expect(try await echod.service.show("NRestarts") == "2")
    }
  }

  /// The connection that goes on is answered as before, and with the new prefix only after a good one.
  @Test(arguments: Release.selected)
  func badSettingsFailTheReload(_ release: Release) async throws {
    try await release.test { machine in
      let echod = try await machine.echod(config: "prefix = one")
      let script = #"""
        exec 3<>/dev/tcp/127.0.0.1/$1
        say() { echo hello >&3; read -r -t 20 line <&3; echo "$line"; }
        say
        # It may have answered before READY=1, until which a reload waits for the start, and does nothing else.
        until systemctl --quiet is-active $3; do sleep .05; done
        printf 'prefix = two\nline-limit = 0\n' >$2; systemctl reload $3; echo $?; say
        printf 'prefix = two\n' >$2; systemctl reload $3; echo $?
        for _ in {1..200}; do answer=$(say); [[ $answer == two* ]] && break; sleep .05; done
        echo "$answer"
        """#
      let file = "/etc/echod/\(machine.unique("echod")).conf"
      let said = try await machine.run(
        "bash", "-c", script, "bash", "\(echod.port)", file, echod.service.name)
      let lines = said.text.split(separator: "\n").filter { !$0.contains("Job for") }
      #expect(
        lines.filter { !$0.contains("See ") } == ["onehello", "1", "onehello", "0", "twohello"])
      #expect(try await echod.service.show("NRestarts") == "0")
    }
  }

  /// A run that can't begin leaves everything to the one that can.
  @Test(arguments: Release.since(254))
  func badSettingsOnlyMakeClientsWait(_ release: Release) async throws {
    try await release.test { machine in
      let echod = try await machine.echod()
      let file = "/etc/echod/\(machine.unique("echod")).conf"
      let restart =
        "echo nonsense >\(file); ! systemctl restart \(echod.service.name) && : >\(file)"
      let counts = try await machine.load(
        echod, ["--clients=50", "--connectors=4", "--do=\(restart)"])
      #expect(counts["dropped"] == 0 && counts["bad"] == 0 && counts["refused"] == 0)
      #expect(counts["sent"] == counts["received"] && counts["failed"] == 0)
      try await echod.service.waitForEntry { $0.message.contains("\"nonsense\" is no setting") }
    }
  }

  /// Three times as many connections as it may have descriptors, and six times as many as it has places: its clients go on
  /// through all of it, over a reload, a ping and a restart, and afterwards everything is as before.
  @Test(arguments: Release.since(254))
  func aFloodChangesNothingForThoseWhoAreThere(_ release: Release) async throws {
    try await release.test { machine in
      let echod = try await machine.echod(
        config: "", "LimitNOFILE=1024", "FileDescriptorStoreMax=512", "WatchdogSec=10s")
      let name = echod.service.name
      let script = "/run/\(machine.unique("flood")).sh"
      try await machine.write(script, Self.throughTheFlood)
      let flood = "/opt/machine/bin/ProbeService crowd \(echod.port) 3000 sh -eu \(script) \(name)"
      let counts = try await machine.load(
        echod, ["--clients=50", "--do=\(flood)", "--do=systemctl restart \(name)"])
      #expect(counts["failed"] == 0 && counts["commands"] == 2)
      #expect(counts["refused"] == 0 && counts["dropped"] == 0)
      #expect(counts["bad"] == 0 && counts["unanswered"] == 0)
      #expect(counts["sent"] == counts["received"])
      try await echod.service.wait("NFileDescriptorStore", is: "0")
      #expect(try await echod.service.show("NRestarts") == "0")
      let after = try await machine.load(echod, ["--clients=10", "--connectors=4"])
      #expect(after["lines"] >= 30 && after["dropped"] == 0 && after["bad"] == 0)
    }
  }

  /// While the crowd is there; $1 is the service.
  private static let throughTheFlood = """
    until journalctl --unit=$1 --output=cat --grep='new clients wait' >/dev/null; do sleep .05; done
    systemctl reload $1
    last=$(systemctl show -P WatchdogTimestampMonotonic $1)
    while [ $(systemctl show -P WatchdogTimestampMonotonic $1) = $last ]; do sleep .05; done
    systemctl restart $1
    """
}
