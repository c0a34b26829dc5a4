import DaemonLifecycle
import DaemonLifecycleFoundation
import DaemonLifecycleTesting
import Foundation
import Testing

private struct DiskFull: Error, CustomStringConvertible {
  let description = "disk full"
}

/// Called like one of the package's.
private struct WillSuspend: LifecycleNotification {}
private struct CacheDropped: LifecycleNotification {}

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
]

private let outcomes: [Outcome] = [
  .completed, .failed(DiskFull()), .timedOut, .abandoned(.waitingForExecutor),
  .abandoned(.running), .abandoned(.unknown), .skipped(.gone), .skipped(.busy),
  .skipped(.outOfTime), .skipped(.noThread), .skipped(.overtaken),
]

@Suite struct CodableTests {
  private func json(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }
  private func decoded<T: Decodable>(_ type: T.Type, _ json: String) throws -> T {
    try JSONDecoder().decode(type, from: Data(json.utf8))
  }
  /// Decodes and encodes; the same bytes both times.
  @discardableResult
  private func roundTrip<T: Codable>(_ value: T) throws -> T {
    let first = try json(value)
    let copy = try decoded(T.self, first)
    #expect(try json(copy) == first)
    return copy
  }
  /// What is wrong with it, and where.
  private func problem<T: Decodable>(_ type: T.Type, _ json: String) -> String? {
    do {
      _ = try decoded(type, json)
      return nil
    } catch DecodingError.dataCorrupted(let context), DecodingError.keyNotFound(_, let context) {
      let place = context.codingPath.map { $0.intValue.map { "\($0)" } ?? $0.stringValue }
      return "\(place.joined(separator: ".")): \(context.debugDescription)"
    } catch {
      return "not the right error: \(error)"
    }
  }

  // MARK: Round trips

  @Test func everyOriginSurvives() throws {
    for origin in origins {
      let cause = LifecycleCause(origin)
      #expect(try roundTrip(cause).description == cause.description)
    }
    #expect(try roundTrip(LifecycleCause(origins[0])).signal == .sigterm)
  }

  @Test func everyOutcomeSurvives() throws {
    for outcome in outcomes {
      let copy = try roundTrip(outcome)
      #expect(copy.isCompleted == outcome.isCompleted)
      if case .failed = outcome { continue }
      #expect("\(copy)" == "\(outcome)")
    }
    guard case .failed(let error) = try roundTrip(Outcome.failed(DiskFull())) else {
      Issue.record("no failure")
      return
    }
    #expect(error as? RecordedError == RecordedError(type: "DiskFull", text: "disk full"))
    #expect("\(error)" == "disk full")
  }

  @Test func words() throws {
    for state in LifecycleState.allCases { #expect(try roundTrip(state) == state) }
    for signal in UnixSignal.all { #expect(try roundTrip(signal) == signal) }
    for resource in DidReceivePressure.Resource.allCases {
      #expect(try roundTrip(resource) == resource)
    }
    #expect(try roundTrip(BackgroundReason("unit x.service")) == BackgroundReason("unit x.service"))
    #expect(try json([LifecycleState.foreground]) == #"["foreground"]"#)
    #expect(try json([UnixSignal.sigterm]) == #"["SIGTERM"]"#)
  }

  @Test func aReportLooksTheSame() async throws {
    let mock = MockLifecycleSubject()
    let failing = Failing()
    mock.addObserver(failing)
    let tokens = [
      mock.observe(CacheDropped.self) { _ in }, mock.observe(WillSuspend.self) { _ in },
    ]
    await mock.settled()
    let report = await mock.send(.sigusr1)
    let copy = try roundTrip(report)
    #expect(copy.description == report.description)
    #expect(copy.problems.map(\.description) == report.problems.map(\.description))
    #expect(copy.entries.map(\.duration) == report.entries.map(\.duration))
    #expect(copy.timeline == report.timeline)
    #expect(copy.entries.allSatisfy { $0.notification != nil })
    // One type of the program's own, and one that is called like another.
    for other in [await mock.post(CacheDropped()), await mock.post(WillSuspend())] {
      let copy = try roundTrip(other)
      #expect(copy.entries.first?.notification == nil)
      #expect(copy.timeline.hasSuffix("  \(copy.entries[0].notificationName ?? "")"))
      #expect(
        copy.entries.first?.notificationName?.hasSuffix("\(other.entries[0].notification!)") == true
      )
    }
    withExtendedLifetime((failing, tokens)) {}
  }

  @Test func anExitLooksTheSame() async throws {
    let mock = MockLifecycleSubject()
    let failing = Failing()
    mock.addObserver(failing)
    await mock.send(.sigterm)
    let exit = try #require(mock.exit)
    let copy = try roundTrip(exit)
    #expect(copy.code == 70)
    #expect(copy.description == exit.description)
    #expect(copy.report.timeline == exit.report.timeline)
    let subject = LifecycleSubject(
      LifecycleConfiguration(
        signals: .none, exitGrace: nil, logsProblems: false, systemd: .off))
    let failed = try await subject.run { throw DiskFull() }
    let failedCopy = try roundTrip(failed)
    #expect(failedCopy.code == 1)
    #expect(failedCopy.description == failed.description)
    #expect(
      failedCopy.error as? RecordedError == RecordedError(type: "DiskFull", text: "disk full"))
    withExtendedLifetime(failing) {}
  }

  @Test func otherStrategiesAndFormats() async throws {
    let mock = MockLifecycleSubject()
    let failing = Failing()
    mock.addObserver(failing)
    await mock.settled()
    let report = await mock.send(.sigusr1)
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let snakes = try encoder.encode(report)
    #expect(String(decoding: snakes, as: UTF8.self).contains("\"duration_nanoseconds\""))
    #expect(
      try decoder.decode(LifecycleReport.self, from: snakes).description == report.description)
    let list = try PropertyListEncoder().encode(report)
    #expect(
      try PropertyListDecoder().decode(LifecycleReport.self, from: list).description
        == report.description)
    withExtendedLifetime(failing) {}
  }

  // MARK: The shape

  @Test func theShapeIsStable() throws {
    let text = """
      {"cause":{"coalesced":1,"origin":"signal","pid":1,"signal":"SIGTERM","uid":0},"entries":[\
      {"durationNanoseconds":40213000,"notification":"DidEnterBackground","observer":"Poller",\
      "offsetNanoseconds":8000,"outcome":"completed","registration":1},\
      {"durationNanoseconds":0,"error":{"text":"disk full","type":"StateError"},\
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
    let report = try decoded(LifecycleReport.self, text)
    #expect(try json(report) == text)
    #expect(
      report.description == """
        SIGTERM from pid 1 uid 0
          Poller, DidEnterBackground: completed after 0.040 s
          Database, ShouldSaveState: failed after 0.000 s: disk full
          body: abandoned after 0.000 s (running)
          Cache, CacheDropped: skipped (gone)
        """)
    #expect(report.entries[0].notification == DidEnterBackground.self)
    #expect(report.entries[2].notificationName == nil)
    #expect(
      report.timeline.hasPrefix("terminate (SIGTERM from pid 1 uid 0) in 41 ms of 90 s"))
    let rows = report.timeline.split(separator: "\n").dropFirst()
    #expect(
      rows.map { $0.dropFirst(2).prefix { $0 != " " } } == [
        "(drain)", "(reload)", "Poller", "Database", "body", "Cache",
      ])
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
    ]
    #expect(try origins.map { try json(LifecycleCause($0)) } == expected)
  }

  // MARK: What a newer version may write

  @Test(arguments: [
    (#"{"origin":"moon"}"#, #"origin: "moon" is no origin that this version knows."#),
    (#"{"origin":"launch","speed":1}"#, #"speed: "speed" is no key that this version knows here."#),
    (#"{"origin":"launch","fact":"x"}"#, #"fact: "fact" is no key that this version knows here."#),
    (
      #"{"origin":"pressure","resource":"gpu"}"#,
      #"resource: "gpu" is no resource that this version knows."#
    ),
    (
      #"{"origin":"signal","signal":"SIGKILL","pid":1,"uid":0,"coalesced":1}"#,
      #"signal: "SIGKILL" is no signal that this version knows."#
    ),
    (
      #"{"origin":"bodyFailed","error":{"type":"A","text":"b","code":1}}"#,
      #"error.code: "code" is no key that this version knows here."#
    ),
  ])
  func unknownCauses(_ json: String, _ sentence: String) {
    #expect(problem(LifecycleCause.self, json) == sentence)
  }

  @Test(arguments: [
    (#""outcome":"exploded""#, #"outcome: "exploded" is no outcome that this version knows."#),
    (
      #""outcome":"completed","reason":"gone""#,
      #"reason: "reason" is no key that this version knows here."#
    ),
    (
      #""outcome":"skipped","reason":"bored""#,
      #"reason: "bored" is no reason that this version knows."#
    ),
    (
      #""outcome":"abandoned","progress":"half""#,
      #"progress: "half" is no progress that this version knows."#
    ),
    (
      #""outcome":"completed","colour":"red""#,
      #"colour: "colour" is no key that this version knows here."#
    ),
  ])
  func unknownEntries(_ outcome: String, _ sentence: String) {
    let entry =
      #"{"observer":"A","notification":"CheckHealth","durationNanoseconds":1,\#(outcome)}"#
    let report = #"{"cause":{"origin":"api"},"entries":[\#(entry)],"isOvertaken":false}"#
    #expect(problem(LifecycleReport.self, report) == "entries.0." + sentence)
    #expect(problem(Outcome.self, "{\(outcome)}") == sentence)
  }

  @Test func unknownReportsExitsAndStates() {
    #expect(
      problem(
        LifecycleReport.self, #"{"cause":{"origin":"api"},"entries":[],"isOvertaken":false,"x":1}"#)
        == #"x: "x" is no key that this version knows here."#)
    #expect(
      problem(LifecycleReport.self, #"{"cause":{"origin":"api"},"isOvertaken":false}"#) != nil)
    #expect(
      problem(LifecycleExit.self, #"{"code":0,"y":1}"#)
        == #"y: "y" is no key that this version knows here."#)
    #expect(
      problem([LifecycleState].self, #"["sleeping"]"#)
        == #"0: "sleeping" is no state that this version knows."#)
  }
}
