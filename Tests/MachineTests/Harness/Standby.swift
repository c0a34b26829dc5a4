// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

/// The shipped pair, on a machine of the test's own, since its targets have no other names.
struct StandbyPair {
  let machine: MachineTest
  let group: Service
  let instances: [String: Service]
  let targets: [String: Service]

  subscript(name: String) -> Service {
    get throws {
      guard let service = instances[name] else { throw TestFailure("no instance \(name)") }
      return service
    }
  }

  func target(_ name: String) throws -> Service {
    guard let target = targets[name] else { throw TestFailure("no instance \(name)") }
    return target
  }

  /// Who has written each line of the ledger, after a check that each number is there, once.
  func writers() async throws -> [String] {
    let lines = try await machine.read("/var/lib/standby/ledger").split(separator: "\n")
    let words = lines.map { $0.split(separator: " ") }
    guard words.map({ Int($0[0]) }) == (0..<lines.count).map({ $0 + 1 }) else {
      throw TestFailure("not numbered one by one: \(lines)")
    }
    return words.map { String($0[1]) }
  }
}

extension MachineTest {
  /// What `systemd/README.md` says to install, and reads ten times a second.
  func standbyPair() async throws -> StandbyPair {
    try await installStandbyFiles()
    let faster =
      "[Service]\nExecStart=\nExecStart=/usr/local/bin/standby --name %i --unit standby-%i.target"
      + " --interval 0.1 /var/lib/standby/ledger\n"
    var (instances, targets): ([String: Service], [String: Service]) = ([:], [:])
    for name in ["a", "b"] {
      instances[name] = try await adopt("standby@\(name).service", dropIns: [faster])
      targets[name] = try await adopt("standby-\(name).target")
    }
    let group = try await adopt("standby.target")
    return StandbyPair(machine: self, group: group, instances: instances, targets: targets)
  }

  func installStandbyFiles() async throws {
    try await installExample(
      "standby", units: "standby@.service", "standby-lease@.service", "standby-a.target",
      "standby-b.target", "standby.target"
    )
  }

  /// Each number is there once, and no token after a higher one.
  func checkLedger() async throws {
    let lines = try await read("/var/lib/standby/ledger").split(separator: "\n")
      .map { $0.split(separator: " ") }
    #expect(lines.map { Int($0[0]) } == lines.indices.map { $0 + 1 })
    let tokens = lines.compactMap { Int($0[2]) }
    #expect(tokens.count == lines.count && tokens == tokens.sorted())
  }
}
