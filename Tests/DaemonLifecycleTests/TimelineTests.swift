// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Testing

@testable import DaemonLifecycle

/// What a timeline looks like, as text: made of entries by hand.
@Suite("Timeline") struct TimelineTests {
  private static let sigterm = LifecycleCause(.signal(.sigterm, pid: 1, uid: 0))

  private struct Poller {}
  private struct Database {}
  private struct Überwachung {}
  private struct Text: Error, CustomStringConvertible { let description: String }

  /// A hook that began after so many milliseconds, and took so many.
  private func entry(
    _ registration: UInt64, _ name: any Any.Type, _ notification: any LifecycleNotification.Type,
    _ began: Int64, _ took: Int, _ outcome: LifecycleReport.Outcome = .completed
  ) -> LifecycleReport.Entry {
    var failure: DaemonLifecycle.Failure?
    if case .failed(let error) = outcome { failure = .init(error) }
    return LifecycleReport.Entry(
      notification: notification, outcome: outcome, duration: .milliseconds(took),
      name: .type(name), failure: failure, began: MonotonicTime(nanoseconds: began * 1_000_000),
      registration: registration)
  }

  private func timeline(
    _ entries: [LifecycleReport.Entry], milliseconds: Int64 = 312, budget: Duration? = .seconds(90),
    cause: LifecycleCause = sigterm
  ) -> LifecycleTimeline {
    LifecycleTimeline(report(entries, milliseconds, budget, cause: cause))
  }

  private func report(
    _ entries: [LifecycleReport.Entry], _ milliseconds: Int64, _ budget: Duration?,
    cause: LifecycleCause = sigterm, isHurried: Bool = false
  ) -> LifecycleReport {
    var report = LifecycleReport(cause: cause, entries: entries)
    report.span = LifecycleSpan(
      event: "terminate", began: MonotonicTime(nanoseconds: 0),
      ended: MonotonicTime(nanoseconds: milliseconds * 1_000_000), budget: budget,
      isHurried: isHurried)
    return report
  }

  /// The next one may be killed before it has saved.
  @Test func aStopThatHasNearlyTakenAllItsTimeIsAWarning() {
    let entries = [
      entry(1, Poller.self, DidEnterBackground.self, 0, 2000),
      entry(2, Database.self, ShouldSaveState.self, 2000, 3000),
      entry(2, Database.self, WillTerminate.self, 5000, 3000),
    ]
    let warnings = [(7200, 9, false), (7201, 9, false), (7201, 9, true)].map {
      report(entries, $0, .seconds($1), isHurried: $2).timeWarning
    }
    #expect(warnings == [nil, "The stop took 7.2 s of its 9 s; Database alone took 6 s.", nil])
    #expect(report(entries, 9000, nil).timeWarning == nil)
    #expect(report([], 9000, .seconds(9)).timeWarning == "The stop took 9 s of its 9 s.")
  }

  // MARK: Rows

  @Test func anObserverHasOneRow() {
    let timeline = timeline([
      entry(1, Poller.self, DidEnterBackground.self, 0, 20),
      entry(2, Poller.self, DidEnterBackground.self, 20, 0),
      entry(1, Poller.self, ShouldSaveState.self, 100, 200),
      entry(1, Poller.self, WillTerminate.self, 306, 6),
    ])
    #expect(
      timeline.description == """
        terminate (SIGTERM from pid 1 uid 0) in 312 ms of 90 s
          Poller  |#     ##############  226 ms  paused, saved (200 ms), terminated
          Poller  |                        0 ms  paused
        """)
    #expect(timeline.rows.map(\.entries.count) == [3, 1])
  }

  @Test func whatWentWrongStandsOut() {
    let timeline = timeline(
      [
        entry(1, Poller.self, DidEnterBackground.self, 0, 2000, .timedOut),
        entry(2, Database.self, DidEnterBackground.self, 0, 8000, .abandoned(.running)),
        entry(3, Int.self, DidEnterBackground.self, 0, 4000, .abandoned(.waitingForExecutor)),
        entry(3, Int.self, ShouldSaveState.self, 8000, 0, .skipped(.busy)),
        entry(4, String.self, ShouldSaveState.self, 8000, 0, .skipped(.outOfTime)),
        entry(6, Text.self, ShouldSaveState.self, 8000, 100),
      ], milliseconds: 8100)
    #expect(
      timeline.description == """
        terminate (SIGTERM from pid 1 uid 0) in 8.1 s of 90 s, 5 of 6 hooks failed
        ! Poller    |xxxxx                    2 s  pause timed out
        ! Database  |xxxxxxxxxxxxxxxxxxx>     8 s  pause abandoned: did not end
        ! Int       |xxxxxxxxx>               4 s  pause abandoned: never got its executor
        ! String    |                           -  save skipped: out of time
          Text      |                   #  100 ms  saved
        """)
  }

  @Test func onlyTheWorstOfMany() {
    var entries = (0..<300).map {
      entry(UInt64($0), Poller.self, DidEnterBackground.self, Int64($0), 1)
    }
    entries[7] = entry(7, Database.self, DidEnterBackground.self, 7, 1, .timedOut)
    entries[100] = entry(100, Int.self, DidEnterBackground.self, 100, 5)
    entries[200] = entry(200, String.self, DidEnterBackground.self, 200, 4)
    entries[250] = entry(250, Bool.self, DidEnterBackground.self, 250, 3)
    let timeline = timeline(entries)
    #expect(
      timeline.rendered(maximumRows: 3) == """
        terminate (SIGTERM from pid 1 uid 0) in 312 ms of 90 s, 1 of 300 hooks failed
        ! Database  |x                     1 ms  pause timed out
          Int       |      #               5 ms  paused
          String    |             #        4 ms  paused
          and 297 more, 3 ms at most
        """)
    #expect(timeline.rendered().split(separator: "\n").count == 14)
    #expect(
      timeline.rendered(maximumRows: 0).hasSuffix(
        "and 300 more, 5 ms at most, 1 of them with problems"))
    #expect(timeline.rendered(maximumRows: 300).split(separator: "\n").count == 301)
  }

  @Test func nobody() {
    #expect(
      timeline([]).description == "terminate (SIGTERM from pid 1 uid 0) in 312 ms of 90 s")
    let empty = LifecycleReport(cause: Self.sigterm, entries: []).timeline
    #expect(empty == "delivered (SIGTERM from pid 1 uid 0) in 0 ms")
  }

  /// As what a mock's `send` returns: no transition says from when to when.
  @Test func ofEntriesAlone() {
    let report = LifecycleReport(
      cause: Self.sigterm,
      entries: [
        entry(1, Poller.self, DidEnterBackground.self, 1000, 40),
        entry(1, Poller.self, ShouldSaveState.self, 1040, 40),
      ])
    let timeline = LifecycleTimeline(report)
    #expect(timeline.duration == .milliseconds(80) && report.span == nil)
    #expect(timeline.description.contains("Poller  |####################"))
  }

  // MARK: Names and errors

  @Test func namesFromElsewhereStayInTheirColumn() {
    let timeline = timeline(
      [entry(1, Überwachung.self, ShouldSaveState.self, 0, 312)],
      cause: LifecycleCause(.other("wegen\n\u{1B}[2JÜ")))
    #expect(
      timeline.description == """
        terminate (wegen\\n\\u{1b}[2JÜ) in 312 ms of 90 s
          Überwachung  |####################  312 ms  saved
        """)
  }

  /// However long and hostile: each line has an end, and none moves a cursor.
  @Test func linesAreBounded() {
    let long = String(repeating: "lang\u{1B}[31m 漢字 \r\n\u{202E}e\u{301}", count: 10_000)
    let timeline = timeline(
      [
        entry(1, Poller.self, DidEnterBackground.self, 0, 40, .failed(Text(description: long))),
        entry(2, [String: [Int: [Database]]].self, ShouldSaveState.self, 40, 100_000),
      ], cause: LifecycleCause(.other(long)))
    let lines = timeline.description.split(separator: "\n")
    #expect(lines.count == 3)
    for line in lines {
      #expect(line.unicodeScalars.count < 1000, "\(line)")
      #expect(!line.contains("\u{1B}") && !line.contains("\u{202E}"))
    }
    // The beginning and the end, in which two names of a kind differ.
    #expect(lines[2].hasPrefix("  Dictionary<Stri…ay<Database>>>  |"))
  }

  @Test(
    arguments: [
      (0, "0 ms"), (99_999, "0 ms"), (400_000, "0.4 ms"), (1_999_999, "1 ms"),
      (312_000_000, "312 ms"),
      (999_999_999, "999 ms"), (1_000_000_000, "1 s"), (1_250_000_000, "1.2 s"),
      (90_000_000_000, "90 s"),
      (-5, "0 ms"), (.max, "9223372036.8 s"),
    ] as [(Int64, String)])
  func durations(_ nanoseconds: Int64, _ text: String) {
    #expect(Duration.nanoseconds(nanoseconds).forReading == text)
  }
}
