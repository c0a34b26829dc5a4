// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import TestSupport
import Testing

@testable import DaemonLifecycle
@testable import DaemonSystemd

/// What operators find in the journal, and at which priority.
@Suite struct LifecycleLogTests {
  private let fake: FakeJournal
  private let core: LifecycleCore

  init() async throws {
    fake = try FakeJournal()
    core = Self.core(loggingTo: fake)
    _ = await core.launch()
  }

  private static func core(loggingTo fake: FakeJournal) -> LifecycleCore {
    let journal = JournalWriter(path: fake.path) { _ in false }
    let log = LifecycleLog(journal: journal, logging: .problems)
    return LifecycleCore(
      configuration: LifecycleConfiguration(), virtualTime: VirtualTime(), harness: Harness(),
      parts: [log],
      watchdogPeriod: nil, exitProcess: { _ in })
  }

  private func send(_ kind: LifecycleRequest, _ signal: UnixSignal) async throws {
    let cause = LifecycleCause(.signal(signal, pid: 7, uid: 0))
    core.receive(LifecycleEvent(kind, cause: cause))
    try await core.untilIdle()
  }

  private func observe<N: LifecycleNotification>(
    _ type: N.Type, _ name: String, _ body: @escaping @Sendable (N) async throws -> Void
  ) {
    _ = core.add(closures: [.closure(for: type, body)], owner: nil, .init(), name: .given(name))
  }

  /// Each entry's fields, all values of each.
  private func entries() throws -> [[String: [String]]] {
    try fake.receiveAll().map { entry in
      var fields: [String: [String]] = [:]
      for line in entry.split(separator: "\n") {
        let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        if parts.count == 2 { fields[String(parts[0]), default: []].append(String(parts[1])) }
      }
      return fields
    }
  }

  @Test func theLaunchNamesTheProcess() throws {
    let entry = try #require(try entries().first)
    #expect(entry["MESSAGE"] == ["Started, pid \(getpid()), in 0 ms"])
    #expect(entry["PRIORITY"] == ["5"] && entry["LIFECYCLE_EVENT"] == ["launch"])
  }

  /// The entry of a launch says that systemd was notified.
  @Test func aLaunchThatFailsHasNotStartedTheDaemon() async throws {
    let core = Self.core(loggingTo: fake)
    _ = core.add(
      closures: [
        .closure(for: DidFinishLaunching.self) { _ in throw Problem(description: "no disk") }
      ], owner: nil, .init(), name: .given("Orders"))
    _ = try entries()
    _ = await core.launch()
    let entry = try #require(try entries().dropFirst().first)
    #expect(entry["MESSAGE"] == ["The launch has failed, after 0 ms, 1 of 1 hooks failed"])
    #expect(entry["PRIORITY"] == ["4"] && entry["LIFECYCLE_EVENT"] == ["launch"])
    #expect(entry["MESSAGE_ID"] == nil)
  }

  @Test func aRejectedReloadIsOneEntry() async throws {
    observe(ShouldReload.self, "Settings") { _ in throw Problem(description: "line 1 is bad") }
    observe(ShouldReload.self, "Routes") { _ in throw Problem(description: "no route") }
    _ = try entries()
    try await send(.reload, .sighup)
    let found = try entries()
    #expect(found.count == 1)
    let entry = try #require(found.first)
    #expect(
      entry["MESSAGE"] == [
        "Reload rejected after 0 ms (SIGHUP from pid 7 uid 0): "
          + "Settings: line 1 is bad; Routes: no route"
      ])
    #expect(entry["PRIORITY"] == ["3"] && entry["LIFECYCLE_EVENT"] == ["reload"])
    #expect(entry["LIFECYCLE_OBSERVER"] == ["Settings", "Routes"])
    #expect(entry["LIFECYCLE_OUTCOME"] == ["failed", "failed"])
    #expect(entry["LIFECYCLE_PROBLEMS"] == ["2"])
    #expect(entry["MESSAGE_ID"] == [LifecycleMessageID.rejection.description])
  }

  /// A name or an error may be of any length; what became of it is at the end.
  @Test(arguments: [true, false]) func aLineHasALimit(isName: Bool) async throws {
    let long = String(repeating: "x", count: 100_000)
    observe(ShouldSaveState.self, isName ? long : "Orders") { _ in
      throw Problem(description: isName ? "disk full" : long)
    }
    _ = try entries()
    try await send(.saveState, .sigusr1)
    let entry = try #require(try entries().first)
    let text = try #require(entry["MESSAGE"]?.first)
    #expect(text.count <= 4001 && text.contains("xxx…xxx"))
    #expect(isName ? text.hasSuffix("failed after 0 ms: disk full") : text.hasPrefix("Orders, "))
    #expect(entry["LIFECYCLE_OBSERVER"]?.first?.count ?? 0 <= 1001)
  }

  @Test func aReloadThatIsAcceptedIsOneEntryToo() async throws {
    observe(ShouldReload.self, "Settings") { _ in }
    _ = try entries()
    try await send(.reload, .sighup)
    let found = try entries()
    #expect(found.map { $0["MESSAGE"] } == [["Reloaded in 0 ms (SIGHUP from pid 7 uid 0)"]])
    #expect(found.first?["PRIORITY"] == ["6"])
  }

  /// The new configuration counts, though what came before it was not saved.
  @Test func aSaveThatFailsIsNoRejection() async throws {
    observe(ShouldSaveState.self, "Orders") { _ in throw Problem(description: "disk full") }
    observe(ShouldReload.self, "Settings") { _ in }
    _ = try entries()
    try await send(.reload, .sighup)
    #expect(
      try entries().map { $0["MESSAGE"] } == [
        ["Orders, ShouldSaveState: failed after 0 ms: disk full"],
        ["Reloaded in 0 ms (SIGHUP from pid 7 uid 0), 1 of 2 hooks failed"],
      ])
  }

  @Test func aFailedHookIsAnError() async throws {
    observe(DidEnterBackground.self, "Orders") { _ in throw Problem(description: "busy") }
    _ = try entries()
    try await send(.pause(for: .operator), .sigusr1)
    let found = try entries()
    #expect(
      found.map { $0["MESSAGE"] } == [
        ["Orders, DidEnterBackground: failed after 0 ms: busy"],
        ["Entered the background in 0 ms (SIGUSR1 from pid 7 uid 0), 1 of 1 hooks failed"],
      ])
    #expect(found.map { $0["PRIORITY"] } == [["3"], ["4"]])
  }

  private struct Problem: Error, CustomStringConvertible { let description: String }
}
