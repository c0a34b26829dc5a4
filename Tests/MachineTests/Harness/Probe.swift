// SPDX-License-Identifier: Apache-2.0
import Foundation
import Synchronization
import TestSupport
import Testing

extension MachineTest {
  /// `ProbeService lifecycle` with these options as a service that speaks to systemd; on one that has no
  /// Type=notify-reload, with an ExecReload= line that sends the signal.
  ///
  /// - Parameters:
  ///   - options: As `LifecycleProbe` describes them.
  ///   - stem: What its name begins with; a test of several needs several.
  ///   - wrapper: A shell command in place of ExecStart= in which `$probe` is the program with its options.
  ///   - lines: More for the section [Service].
  func lifecycle(
    _ options: String = "", named stem: String = "lifecycle", wrapper: String = "",
    _ lines: String...
  ) async throws -> Service {
    let program = "/opt/machine/bin/ProbeService lifecycle \(options)"
    let shell = wrapper.replacingOccurrences(of: "$probe", with: program)
    let text = """
      [Unit]
      StartLimitIntervalSec=0
      [Service]
      Type=\(reloadingType())
      ExecStart=\(wrapper.isEmpty ? program : "/bin/sh -c '\(shell)'")
      Restart=no
      \(lines.joined(separator: "\n"))

      """
    let name = unique(stem) + ".service"
    // systemd forgets a unit that has ended, and with it its Result, unless another one names it.
    try await write(
      "/etc/systemd/system/multi-user.target.d/\(name).conf", "[Unit]\nAfter=\(name)\n")
    return try await install(name, text)
  }

  /// What answers a reload: 252 does not know `notify-reload`, and sends SIGHUP as its unit says, of the `--system` or a
  /// `--user`.
  func reloadingType(_ manager: String = "--system") -> String {
    // "+": not as the service's user, who may not ask this of the system's manager.
    let reload =
      (manager == "--system" ? "+" : "")
      + "systemctl \(manager) kill --kill-whom=main --signal=HUP %n"
    return systemd >= 253 ? "notify-reload" : "notify\nExecReload=\(reload)"
  }

  /// Waits until a shell script succeeds, asking again and again; its arguments are $1, $2…
  func wait(
    until script: String, _ arguments: String..., within limit: Duration = .seconds(60)
  ) async throws {
    let loop = "until (\(script)) >/dev/null 2>&1; do sleep .05; done; echo done"
    guard try await machine.firstLine(of: loop, arguments, within: limit, where: { $0 }) != nil
    else { throw TestFailure("not so after \(limit): \(script) \(arguments)") }
  }

  /// A file that is not there yet: what a hook waits for (`--gate=`). Nothing a sandbox hides.
  var gate: String { "/var/lib/gate-t\(number)" }

  /// Lets the hook go on.
  func open(_ gate: String) async throws { try await write(gate, "") }
}

extension Service {
  /// Waits until `STATUS=` is one that `matches`.
  @discardableResult
  func waitForStatus(
    within limit: Duration = .seconds(60), at location: SourceLocation = #_sourceLocation,
    where matches: @escaping @Sendable (String) -> Bool
  ) async throws -> String {
    try await wait("StatusText", within: limit, at: location, where: matches)
  }

  /// Waits until the watchdog has been pinged so many times more.
  func waitForPings(
    _ count: Int, within limit: Duration = .seconds(60),
    at location: SourceLocation = #_sourceLocation
  ) async throws {
    let seen = Mutex(0)
    // Each value is seen once; the first is the last ping before.
    try await wait("WatchdogTimestampMonotonic", within: limit, at: location) { _ in
      seen.withLock { seen in
        seen += 1
        return seen > count
      }
    }
  }

  /// Its transitions of one kind, as they are in the journal: `"reload"`.
  func transitions(_ event: String) async throws -> [JournalEntry] {
    try await test.journal("_SYSTEMD_UNIT=\(name)", "LIFECYCLE_EVENT=\(event)")
      .filter { $0["LIFECYCLE_DURATION_USEC"] != nil }  // not problems, nor what was overtaken
  }

  /// Waits for the first transition of a kind.
  @discardableResult
  func waitForTransition(
    _ event: String, at location: SourceLocation = #_sourceLocation
  ) async throws -> JournalEntry {
    try await test.waitForJournal(
      "_SYSTEMD_UNIT=\(name)", "LIFECYCLE_EVENT=\(event)", at: location
    ) { $0["LIFECYCLE_DURATION_USEC"] != nil }
  }

  /// What its last termination has said of itself.
  func timeline() async throws -> JournalEntry {
    try #require(try await transitions("terminate").last)
  }

  /// How many lines of its processes begin so.
  func lines(_ prefix: String) async throws -> Int {
    try await test.journal("_SYSTEMD_UNIT=\(name)", "_TRANSPORT=stdout")
      .count { $0.message.hasPrefix(prefix) }
  }

  /// Checks that it ends well.
  func stopsWell(at location: SourceLocation = #_sourceLocation) async throws {
    try await stop()
    #expect(try await show("Result") == "success", sourceLocation: location)
    #expect(try await show("ActiveState") == "inactive", sourceLocation: location)
  }
}
