// SPDX-License-Identifier: Apache-2.0
import Foundation
import Synchronization
import TestSupport
import Testing

/// A unit of a test, and what an operator does with it.
struct Service: Sendable {
  let name: String
  let test: MachineTest

  // MARK: Commands

  /// `systemctl verb unit`, whatever its status.
  func systemctl(_ verb: String, _ options: String..., within limit: Duration = .seconds(60))
    async throws -> Output
  {
    try await test.machine.run(["systemctl", verb] + options + [name], within: limit)
  }

  func start() async throws { try await must("start") }
  func stop() async throws { try await must("stop") }
  func restart() async throws { try await must("restart") }
  func reload() async throws { try await must("reload") }

  /// Sends a signal to the main process: "USR1".
  func kill(_ signal: String) async throws {
    try await test.expect("systemctl", "kill", "--kill-whom=main", "--signal=\(signal)", name)
  }

  private func must(_ verb: String) async throws { try await test.expect("systemctl", verb, name) }

  // MARK: Properties

  /// A property: `StatusText`, `MainPID`.
  func show(_ property: String) async throws -> String {
    try await test.expect("systemctl", "show", "--property=\(property)", "--value", name)
  }

  var mainPID: Int {
    get async throws { Int(try await show("MainPID")) ?? 0 }
  }

  /// Waits until a property has a value.
  func wait(
    _ property: String, is value: String, within limit: Duration = .seconds(60),
    at location: SourceLocation = #_sourceLocation
  ) async throws {
    try await wait(property, within: limit, at: location) { $0 == value }
  }

  /// Waits until a property has a value that `matches`, and returns it.
  @discardableResult
  func wait(
    _ property: String, within limit: Duration = .seconds(60),
    at location: SourceLocation = #_sourceLocation,
    where matches: @escaping @Sendable (String) -> Bool
  ) async throws -> String {
    // Each value once. A process of the machine asks, so that asking is cheap.
    let script = """
      last=none-yet
      while :; do
        value=$(systemctl show --property="$2" --value "$1")
        [ "$value" = "$last" ] || echo "$value"
        last=$value
        sleep .03
      done
      """
    let seen = Mutex<[String]>([])
    let value = try await test.machine.firstLine(of: script, [name, property], within: limit) {
      value in
      seen.withLock { $0.append(value) }
      return matches(value) ? value : nil
    }
    if let value { return value }
    let values = seen.withLock { $0 }
    throw TestFailure(
      "\(location): \(property) of \(name) had no such value in \(limit); it was \(values)")
  }

  // MARK: Journal

  /// What the unit's processes have written, and what systemd has written about it.
  func journal() async throws -> [JournalEntry] {
    try await test.journal("--unit=\(name)")
  }

  /// Waits for a message that begins so, written by the unit or about it; old ones count, but only those
  /// `after` another entry if there is one.
  @discardableResult
  func waitForMessage(
    _ prefix: String, after earlier: JournalEntry? = nil, within limit: Duration = .seconds(60),
    at location: SourceLocation = #_sourceLocation
  ) async throws -> JournalEntry {
    try await waitForEntry(after: earlier, within: limit, at: location) {
      $0.message.hasPrefix(prefix)
    }
  }

  /// As `waitForMessage`, for an entry that `matches`.
  @discardableResult
  func waitForEntry(
    after earlier: JournalEntry? = nil, within limit: Duration = .seconds(60),
    at location: SourceLocation = #_sourceLocation,
    where matches: @escaping @Sendable (JournalEntry) -> Bool
  ) async throws -> JournalEntry {
    try await test.waitForJournal("--unit=\(name)", within: limit, at: location) { entry in
      earlier.map { entry.isAfter($0) } != false && matches(entry)
    }
  }
}
