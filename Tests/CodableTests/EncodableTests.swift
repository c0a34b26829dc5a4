// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleCodable
import DaemonLifecycleTesting
import DaemonSystemd
import Foundation
import Testing

@testable import DaemonLifecycle

private struct DiskFull: Error, CustomStringConvertible {
  let description = "disk full"
}

/// Called like one of the package's.
private struct WillSuspend: CustomNotification {}
private struct CacheDropped: CustomNotification {}
private enum Poller {}
private enum Database {}
private enum Cache {}

private final class Failing: StateObserver, BackgroundObserver {
  func shouldSaveState(_ notification: ShouldSaveState) throws { throw DiskFull() }
  func didEnterBackground(_ notification: DidEnterBackground) {}
}

private typealias Outcome = LifecycleReport.Outcome

private let origins: [LifecycleCause.Origin] = [
  .signal(.sigterm, pid: -1, uid: 4_294_967_295, coalesced: 3), .launch, .api,
  .bus("the machine is about to sleep"), .pressure(.io), .watchdog, .bodyReturned,
  .bodyFailed(DiskFull()), .callerCancelled, .launchFailed, .lateObserver, .other("a \"test\""),
  .signal(.sighup, from: .kernel, coalesced: 1),
  .signal(.sighup, from: .queued(claimedPID: 1, claimedUID: 0), coalesced: 1),
  .signal(.sighup, from: .queued(claimedPID: nil, claimedUID: nil), coalesced: 1),
  .signal(.sighup, from: .dispatch, coalesced: 2),
]

private let outcomes: [Outcome] = [
  .completed, .failed(DiskFull()), .timedOut, .abandoned(.waitingForExecutor),
  .abandoned(.running), .skipped(.busy),
  .skipped(.outOfTime), .skipped(.noThread), .skipped(.overtaken),
  .skipped(.earlierHookFailed),
]

private let outcomeWords = [
  #""outcome":"completed""#, #""outcome":"failed""#, #""outcome":"timedOut""#,
  #""outcome":"abandoned","progress":"waitingForExecutor""#,
  #""outcome":"abandoned","progress":"running""#, #""outcome":"skipped","reason":"busy""#,
  #""outcome":"skipped","reason":"outOfTime""#, #""outcome":"skipped","reason":"noThread""#,
  #""outcome":"skipped","reason":"overtaken""#,
  #""outcome":"skipped","reason":"earlierHookFailed""#,
]

@Suite struct EncodableTests {
  private func json(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }

  // MARK: What a report says

  /// As a dictionary, which is how a reader without this package sees it.
  private func object(_ value: some Encodable) throws -> [String: Any] {
    let object = try JSONSerialization.jsonObject(with: Data(json(value).utf8))
    return try #require(object as? [String: Any])
  }

  @Test func words() throws {
    #expect(
      try json(LifecycleState.allCases) == #"["launching","background","foreground","terminated"]"#)
    #expect(try json([UnixSignal.sigterm]) == #"["SIGTERM"]"#)
    #expect(try json([BackgroundReason("unit x.service")]) == #"["unit x.service"]"#)
  }

  @Test(arguments: outcomes.indices) fileprivate func anOutcomeIsWordsBesideTheEntry(
    _ index: Int
  ) throws {
    let entry = LifecycleReport.Entry(
      notification: CheckHealth.self, outcome: outcomes[index], duration: .nanoseconds(5),
      name: .body)
    let text = try json(LifecycleReport(cause: LifecycleCause(.launch), entries: [entry]))
    #expect(
      text.contains(#""offsetNanoseconds":0,\#(outcomeWords[index]),"registration":0"#), "\(text)")
  }

  @Test func aReport() async throws {
    let mock = MockLifecycleSubject()
    let failing = Failing()
    mock.addObserver(failing)
    let tokens = [
      mock.observe(CacheDropped.self) { _ in }, mock.observe(WillSuspend.self) { _ in },
    ]
    try await mock.settled()
    try await mock.send(.sigusr1)
    let report = try object(try #require(mock.reports.last))
    let entries = try #require(report["entries"] as? [[String: Any]])
    #expect(
      entries.map { $0["notification"] as? String } == ["DidEnterBackground", "ShouldSaveState"])
    #expect(entries.map { $0["outcome"] as? String } == ["completed", "failed"])
    #expect(
      entries[1]["error"] as? [String: String] == ["type": "DiskFull", "text": "disk full"])
    #expect((report["span"] as? [String: Any])?["event"] as? String == "background")
    // One type of the program's own, and one that is called like one of the package's.
    var names: [String?] = []
    for other in [await mock.post(CacheDropped()), await mock.post(WillSuspend())] {
      let report = try object(other)
      #expect(report["span"] == nil)
      names.append((report["entries"] as? [[String: Any]])?.first?["notification"] as? String)
    }
    #expect(names[0] == "CacheDropped")
    #expect(names[1] != "WillSuspend" && names[1]?.hasSuffix("WillSuspend") == true)
    withExtendedLifetime((failing, tokens)) {}
  }

  @Test func anExit() async throws {
    let mock = MockLifecycleSubject()
    let failing = Failing()
    mock.addObserver(failing)
    try await mock.send(.sigterm)
    let exit = try object(try #require(mock.exit))
    #expect(exit["code"] as? Int == 70)
    #expect((exit["cause"] as? [String: Any])?["signal"] as? String == "SIGTERM")
    #expect(exit["report"] != nil && exit["failedLaunch"] == nil && exit["error"] == nil)
    let subject = LifecycleSubject(
      configuration: LifecycleConfiguration(
        signals: .none, exitGrace: nil, logsProblems: false, systemd: .off))
    let failed = try object(try await subject.run { throw DiskFull() })
    #expect(failed["code"] as? Int == 1)
    #expect(failed["error"] as? [String: String] == ["type": "DiskFull", "text": "disk full"])
    withExtendedLifetime(failing) {}
  }

  @Test func otherStrategiesAndFormats() async throws {
    let mock = MockLifecycleSubject()
    let failing = Failing()
    mock.addObserver(failing)
    try await mock.settled()
    let report = try await mock.send(.sigusr1)
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    let snakes = String(decoding: try encoder.encode(report), as: UTF8.self)
    #expect(snakes.contains("\"duration_nanoseconds\""))
    #expect(!(try PropertyListEncoder().encode(report)).isEmpty)
    withExtendedLifetime(failing) {}
  }

  // MARK: The shape

  @Test func theShapeIsStable() throws {
    let text = """
      {"cause":{"coalesced":1,"origin":"signal","pid":1,"signal":"SIGTERM","uid":0},"entries":[\
      {"durationNanoseconds":40213000,"notification":"DidEnterBackground","observer":"Poller",\
      "offsetNanoseconds":8000,"outcome":"completed","registration":1},\
      {"durationNanoseconds":0,"error":{"text":"disk full","type":"DiskFull"},\
      "notification":"ShouldSaveState","observer":"Database","offsetNanoseconds":40300000,"outcome":"failed",\
      "registration":2},\
      {"durationNanoseconds":5,"observer":"body","offsetNanoseconds":40300000,"outcome":"abandoned",\
      "progress":"running","registration":0},\
      {"durationNanoseconds":0,"notification":"CacheDropped","observer":"Cache","offsetNanoseconds":40300005,\
      "outcome":"skipped","reason":"gone","registration":3}\
      ],"isOvertaken":true,"span":{"budgetNanoseconds":90000000000,"durationNanoseconds":41000000,\
      "event":"terminate","isHurried":false,"prelude":[{"durationNanoseconds":3000000,"offsetNanoseconds":0},\
      {"durationNanoseconds":1000000,"offsetNanoseconds":3000000,"overtaken":"reload"}]}}
      """
    func at(_ nanoseconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: nanoseconds) }
    func entry(
      _ notification: (any LifecycleNotification.Type)?, _ outcome: Outcome, _ duration: Int64,
      _ name: ObserverName, began: Int64, _ registration: UInt64
    ) -> LifecycleReport.Entry {
      LifecycleReport.Entry(
        notification: notification, outcome: outcome, duration: .nanoseconds(duration), name: name,
        began: at(began), registration: registration)
    }
    var report = LifecycleReport(
      cause: LifecycleCause(.signal(.sigterm, pid: 1, uid: 0, coalesced: 1)),
      entries: [
        entry(
          DidEnterBackground.self, .completed, 40_213_000, .type(Poller.self), began: 8000, 1),
        entry(
          ShouldSaveState.self, .failed(DiskFull()), 0, .type(Database.self), began: 40_300_000, 2),
        entry(nil, .abandoned(.running), 5, .body, began: 40_300_000, 0),
        entry(
          CacheDropped.self, .skipped(.gone), 0, .type(Cache.self), began: 40_300_005, 3),
      ])
    report.isOvertaken = true
    report.span = LifecycleSpan(
      event: "terminate", began: at(0), ended: at(41_000_000), budget: .seconds(90),
      prelude: [
        .init(activity: .drain, began: at(0), ended: at(3_000_000)),
        .init(activity: .overtaken("reload"), began: at(3_000_000), ended: at(4_000_000)),
      ])
    #expect(try json(report) == text)
    let expected = [
      #"{"coalesced":3,"origin":"signal","pid":-1,"signal":"SIGTERM","uid":4294967295}"#,
      #"{"origin":"launch"}"#, #"{"origin":"api"}"#,
      #"{"fact":"the machine is about to sleep","origin":"bus"}"#,
      #"{"origin":"pressure","resource":"io"}"#, #"{"origin":"watchdog"}"#,
      #"{"origin":"bodyReturned"}"#,
      #"{"error":{"text":"disk full","type":"DiskFull"},"origin":"bodyFailed"}"#,
      #"{"origin":"callerCancelled"}"#, #"{"origin":"launchFailed"}"#,
      #"{"origin":"lateObserver"}"#, #"{"origin":"other","text":"a \"test\""}"#,
      #"{"coalesced":1,"origin":"signal","pid":0,"signal":"SIGHUP","uid":0}"#,
      #"{"claimedPID":1,"claimedUID":0,"coalesced":1,"origin":"signal","signal":"SIGHUP"}"#,
      #"{"coalesced":1,"origin":"signal","signal":"SIGHUP"}"#,
      #"{"coalesced":2,"origin":"signal","signal":"SIGHUP","via":"Dispatch"}"#,
    ]
    #expect(try origins.map { try json(LifecycleCause($0)) } == expected)
  }
}
