// SPDX-License-Identifier: Apache-2.0
import Foundation
import Synchronization
import TestSupport
import Testing

/// What one test has of a machine: names of its own, what it has put there, and its units' end.
///
/// For example:
///
///     @Test(arguments: Release.selected) func stops(_ release: Release) async throws {
///       try await release.test { machine in
///         let service = try await machine.service("sleeper", exec: "/bin/sleep infinity")
///         try await service.start()
///         try await service.kill("TERM")
///         try await service.wait("ActiveState", is: "inactive")
///       }
///     }
final class MachineTest: Sendable {
  let machine: Machine
  /// Part of every name that the test gives: tests run at the same time in one machine.
  let number: Int
  let hasFailed = Atomic(false)
  private let units = Mutex<[String]>([])
  private let paths = Mutex<[String]>([])

  /// The one that the current task belongs to.
  @TaskLocal static var current: MachineTest?

  private static let count = Atomic<Int>(0)

  init(_ machine: Machine) {
    self.machine = machine
    number = Self.count.add(1, ordering: .relaxed).newValue
  }

  var release: Release { machine.release }
  /// As `systemctl --version` has it; checked once, by a test.
  var systemd: Int { release.systemd }

  /// Two names of the same stem differ when their tests do.
  func unique(_ stem: String) -> String { "\(stem)-t\(number)" }

  // MARK: Commands and files

  /// Runs a command in the machine, as root and in no unit but init.scope.
  func run(_ command: String..., within limit: Duration = .seconds(60)) async throws -> Output {
    try await machine.run(command, within: limit)
  }

  /// As `run`, of a shell script; its arguments are $1, $2…
  func shell(
    _ script: String, _ arguments: String..., within limit: Duration = .seconds(60)
  ) async throws -> Output {
    try await machine.run(["sh", "-c", script, "sh"] + arguments, within: limit)
  }

  /// What a command prints; an error if it fails.
  @discardableResult
  func expect(_ command: String..., within limit: Duration = .seconds(60)) async throws -> String {
    let output = try await machine.run(command, within: limit)
    guard output.isSuccess else {
      throw TestFailure("\(command.joined(separator: " ")): \(output.exit): \(output.text)")
    }
    return output.text
  }

  /// Writes a file, in folders that are made if need be; it is removed after the test.
  func write(_ path: String, _ contents: String, mode: String = "644") async throws {
    paths.withLock { $0.append(path) }
    try await put(path, contents, mode: mode)
  }

  /// As `write`, but it stays. In one step, since other tests read what is there.
  func put(_ path: String, _ contents: String, mode: String = "644") async throws {
    let script =
      #"mkdir -p "${1%/*}"; printf %s "$4" >"$1.$2"; chmod "$3" "$1.$2"; mv "$1.$2" "$1""#
    try await expect("sh", "-euc", script, "sh", path, "new\(number)", mode, contents)
  }

  func read(_ path: String) async throws -> String {
    try await expect("cat", path)
  }

  /// What the machine sees as /share, as a path out here; there as long as the machine is.
  var share: String { machine.share }

  // MARK: Units

  /// Puts a unit file into the machine, with drop-ins, and has systemd read it.
  @discardableResult
  func install(_ name: String, _ text: String, dropIns: [String] = []) async throws -> Service {
    try await write("/etc/systemd/system/\(name)", text)
    return try await adopt(name, dropIns: dropIns)
  }

  /// A unit that is there already, an instance of a template for instance: the test adds its drop-ins, and
  /// ends it.
  func adopt(_ name: String, dropIns: [String] = []) async throws -> Service {
    units.withLock { $0.append(name) }
    for (index, text) in dropIns.enumerated() {
      try await write("/etc/systemd/system/\(name).d/90-test-\(index).conf", text)
    }
    try await expect("systemctl", "daemon-reload")
    return Service(name: name, test: self)
  }

  /// A service of its own name that runs a command, such as `/opt/machine/bin/ProbeDaemon wait`.
  func service(
    _ stem: String, exec: String, type: String = "exec", _ lines: String...
  ) async throws -> Service {
    let text = "[Service]\nType=\(type)\nExecStart=\(exec)\n" + lines.joined(separator: "\n") + "\n"
    return try await install(unique(stem) + ".service", text)
  }

  // MARK: End

  /// Ends the test's units, with force, and removes its files.
  func cleanUp() async throws {
    let script = """
      for unit; do
        systemctl thaw "$unit"
        systemctl kill --signal=KILL "$unit"
        systemctl stop "$unit"
        systemctl reset-failed "$unit"
        # Not the configuration: instances of a template share it.
        systemctl clean --what=state --what=cache --what=logs --what=runtime "$unit"
        systemctl clean --what=fdstore "$unit"
        rm -rf "/etc/systemd/system/$unit.d"
      done >/dev/null 2>&1
      """
    let names = units.withLock { $0 }
    if !names.isEmpty {
      _ = try await machine.run(["sh", "-c", script, "sh"] + names, within: .seconds(60))
    }
    let files = paths.withLock { $0 }
    if !files.isEmpty { _ = try await machine.run(["rm", "-f"] + files, within: .seconds(60)) }
  }

  /// For whoever reads why a test has failed.
  func describeUnits() async -> String {
    var text = ""
    for name in units.withLock({ $0 }) {
      let status = try? await machine.run(
        ["systemctl", "status", "--no-pager", "--full", "--lines=0", name], within: .seconds(10))
      let journal = try? await machine.run(
        ["journalctl", "--no-pager", "--output=short-precise", "--lines=200", "--unit=\(name)"],
        within: .seconds(10))
      text += "\n-- \(name) on \(release.testDescription)\n\(status?.text ?? "")\n"
      text += journal?.text ?? ""
    }
    return text
  }
}

// MARK: - Running a test

extension Release {
  /// Which machine a test runs on.
  enum Place {
    /// With others at the same time: for what happens to the test's own units only. polkit is installed.
    case shared
    /// One that is booted for the test, in half a second: for suspend, shutdown, what happens to the bus or
    /// to systemd itself, and for a machine without polkit.
    case own(polkit: Bool = true)
  }

  /// Runs a test on a machine of this release, with what it puts there cleaned up afterwards; when it fails,
  /// prints the status and the journal of its units.
  @discardableResult
  func test<T>(
    on place: Place = .shared, _ body: (MachineTest) async throws -> T
  ) async throws -> T {
    try await Crowd.enter {
      switch place {
      case .shared:
        return try await run(body, on: try await Machine.shared(self))
      case .own(let polkit):
        let machine = try await Machine(booting: self, polkit: polkit)
        let result: Result<T, any Error>
        do { result = .success(try await run(body, on: machine)) } catch {
          result = .failure(error)
        }
        try await machine.end()
        return try result.get()
      }
    }
  }

  private func run<T>(
    _ body: (MachineTest) async throws -> T, on machine: Machine
  ) async throws -> T {
    let test = MachineTest(machine)
    let result: Result<T, any Error>
    do {
      result = .success(try await MachineTest.$current.withValue(test) { try await body(test) })
    } catch {
      test.hasFailed.store(true, ordering: .relaxed)
      result = .failure(error)
    }
    if test.hasFailed.load(ordering: .relaxed) { print(await test.describeUnits()) }
    try await test.cleanUp()
    return try result.get()
  }
}

extension Trait where Self == IssueHandlingTrait {
  /// Tells a machine's test of expectations that have failed in it.
  static var describesUnits: Self {
    .compactMapIssues { issue in
      MachineTest.current?.hasFailed.store(true, ordering: .relaxed)
      return issue
    }
  }
}
