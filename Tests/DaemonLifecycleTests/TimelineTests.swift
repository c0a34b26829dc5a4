import Testing

@testable import DaemonLifecycle

/// What a timeline looks like, as text: made of entries by hand.
@Suite("Timeline") struct TimelineTests {
  private static let sigterm = LifecycleCause(.signal(.sigterm, pid: 1, uid: 0, coalesced: 1))

  private struct Poller {}
  private struct Database {}
  private struct Überwachung {}
  private struct Text: Error, CustomStringConvertible { let description: String }

  /// A hook that began after so many milliseconds, and took so many.
  private func entry(
    _ registration: UInt64, _ name: any Any.Type, _ notification: any LifecycleNotification.Type,
    _ began: Int64, _ took: Int, _ outcome: LifecycleReport.Outcome = .completed
  ) -> LifecycleReport.Entry {
    var text: String?
    if case .failed(let error) = outcome { text = "\(error)" }
    return LifecycleReport.Entry(
      notification: notification, outcome: outcome, duration: .milliseconds(took),
      name: .type(name), errorText: text, began: MonotonicTime(nanoseconds: began * 1_000_000),
      registration: registration)
  }

  private func timeline(
    _ entries: [LifecycleReport.Entry], milliseconds: Int64 = 312, budget: Duration? = .seconds(90),
    cause: LifecycleCause = sigterm
  ) -> LifecycleTimeline {
    var report = LifecycleReport(cause: cause, entries: entries)
    report.span = LifecycleSpan(
      event: "terminate", began: MonotonicTime(nanoseconds: 0),
      ended: MonotonicTime(nanoseconds: milliseconds * 1_000_000), budget: budget)
    return report.timeline
  }

  private var twoObservers: LifecycleTimeline {
    timeline([
      entry(1, Poller.self, DidEnterBackground.self, 0, 40),
      entry(2, Database.self, ShouldSaveState.self, 42, 270),
    ])
  }

  // MARK: Offsets

  @Test func offsetsWithoutASpanAreFromTheFirstThatBegan() {
    let entries = [
      entry(1, Poller.self, ShouldSaveState.self, 40, 5),
      entry(2, Database.self, ShouldSaveState.self, 30, 20),
    ]
    let report = LifecycleReport(cause: LifecycleCause(.api), entries: entries)
    #expect(report.offsets == [.milliseconds(10), .zero])
    #expect(LifecycleReport(cause: LifecycleCause(.api), entries: []).offsets == [])
  }

  // MARK: Styles

  @Test func plain() {
    #expect(
      twoObservers.description == """
        terminate (SIGTERM from pid 1 uid 0) in 312 ms of 90 s
          Poller    |###                    40 ms  paused
          Database  |   #################  270 ms  saved
        """)
  }

  @Test func blocks() {
    #expect(
      twoObservers.rendered(style: .blocks) == """
        terminate (SIGTERM from pid 1 uid 0) in 312 ms of 90 s
          Poller    ▏██▋                    40 ms  paused
          Database  ▏   █████████████████  270 ms  saved
        """)
  }

  @Test func onlyProblemsHaveColour() {
    let timeline = timeline([
      entry(1, Poller.self, DidEnterBackground.self, 0, 156),
      entry(2, Database.self, ShouldSaveState.self, 156, 156, .failed(Text(description: "full"))),
    ])
    #expect(
      timeline.rendered(width: 60, style: .colour) == """
        terminate (SIGTERM from pid 1 uid 0) in 312 ms of 90 s, 1 of 2 hooks failed
          Poller    ▏███████▌         156 ms  paused
        \u{1B}[31m! Database  ▏        ▒▒▒▒▒▒▒  156 ms  save failed: full\u{1B}[0m
        """)
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
          Poller  |#     #############.  226 ms  paused, saved (200 ms), terminated
          Poller  |                        0 ms  paused
        """)
    #expect(timeline.rows.map(\.segments.count) == [3, 1])
    #expect(
      timeline.rows[0].segments.map(\.offset) == [.zero, .milliseconds(100), .milliseconds(306)])
    #expect(timeline.slowest?.duration == .milliseconds(226))
  }

  @Test func whatWentWrongStandsOut() {
    let timeline = timeline(
      [
        entry(1, Poller.self, DidEnterBackground.self, 0, 2000, .timedOut),
        entry(2, Database.self, DidEnterBackground.self, 0, 8000, .abandoned(.running)),
        entry(3, Int.self, DidEnterBackground.self, 0, 4000, .abandoned(.waitingForExecutor)),
        entry(3, Int.self, ShouldSaveState.self, 8000, 0, .skipped(.busy)),
        entry(4, String.self, ShouldSaveState.self, 8000, 0, .skipped(.outOfTime)),
        entry(5, Bool.self, ShouldSaveState.self, 8000, 0, .skipped(.gone)),
        entry(6, Text.self, ShouldSaveState.self, 8000, 100),
      ], milliseconds: 8100)
    #expect(
      timeline.rendered(width: 100) == """
        terminate (SIGTERM from pid 1 uid 0) in 8.1 s of 90 s, 5 of 7 hooks failed
        ! Poller    |xxxxxx                        2 s  pause timed out
        ! Database  |xxxxxxxxxxxxxxxxxxxxxxxx>     8 s  pause abandoned: did not end
        ! Int       |xxxxxxxxxxx>                  4 s  pause abandoned: never got its executor
        ! String    |                                -  save skipped: out of time
          Bool      |                                -  gone
          Text      |                        .  100 ms  saved
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
        ! Database  | x                    1 ms  pause timed out
          Int       |      .               5 ms  paused
          String    |             .        4 ms  paused
          and 297 more, 3 ms at most
        """)
    #expect(timeline.rendered().split(separator: "\n").count == 14)
    #expect(
      timeline.rendered(maximumRows: 0).hasSuffix(
        "and 300 more, 5 ms at most, 1 of them with problems"))
    #expect(timeline.rendered(maximumRows: 300).split(separator: "\n").count == 301)
  }

  @Test func rowsAreInTheOrderInWhichHooksEnded() {
    // As a concurrent phase ends: the slowest last.
    let timeline = timeline([
      entry(1, Poller.self, DidEnterBackground.self, 5, 1),
      entry(2, Database.self, DidEnterBackground.self, 0, 312),
      entry(1, Poller.self, ShouldSaveState.self, 312, 0),
    ])
    #expect(timeline.rows.map(\.observer) == ["Poller", "Database"])
  }

  @Test func nobody() {
    #expect(
      timeline([]).description == "terminate (SIGTERM from pid 1 uid 0) in 312 ms of 90 s")
    let empty = LifecycleReport(cause: Self.sigterm, entries: []).timeline
    #expect(empty.description == "delivered (SIGTERM from pid 1 uid 0) in 0 ms")
  }

  /// As what a mock's `send` returns: no transition says from when to when.
  @Test func ofEntriesAlone() {
    let report = LifecycleReport(
      cause: Self.sigterm,
      entries: [
        entry(1, Poller.self, DidEnterBackground.self, 1000, 40),
        entry(1, Poller.self, ShouldSaveState.self, 1040, 40),
      ])
    #expect(report.timeline.duration == .milliseconds(80) && report.timeline.budget == nil)
    #expect(report.timeline.rows[0].offset == .zero)
  }

  /// As a concurrent phase of many ends: made and rendered in a moment.
  @Test func ofTenThousandObservers() {
    let entries = (0..<30_000).map {
      entry(UInt64($0 % 10_000), Poller.self, ShouldSaveState.self, Int64($0 / 100), $0 % 7)
    }
    let text = timeline(entries).description
    #expect(text.hasSuffix("and 9988 more, 13 ms at most"), "\(text)")
  }

  // MARK: Texts

  @Test func namesFromElsewhereStayInTheirColumn() {
    let timeline = timeline(
      [entry(1, Überwachung.self, ShouldSaveState.self, 0, 312)],
      cause: LifecycleCause(.other("wegen\n\u{1B}[2JÜ")))
    #expect(
      timeline.rendered(width: 60) == """
        terminate (wegen\\n\\u{1b}[2JÜ) in 312 ms of 90 s
          Überwachung  |###############  312 ms  saved
        """)
  }

  @Test(arguments: LifecycleTimeline.Style.allCases, [0, 40, 59, 60, 80, 133, 200])
  func linesFit(_ style: LifecycleTimeline.Style, _ width: Int) {
    let long = String(repeating: "lang\u{1B}[31m 漢字 \r\n\u{202E}", count: 10_000)
    let cause = LifecycleCause(.other(long))
    let timeline = timeline(
      [
        entry(1, Poller.self, DidEnterBackground.self, 0, 40, .failed(Text(description: long))),
        entry(2, [String: [Int: [Database]]].self, ShouldSaveState.self, 40, 100_000),
      ], cause: cause)
    let lines = timeline.rendered(width: width, style: style).split(separator: "\n")
    #expect(lines.count == 3)
    for line in lines.dropFirst() {
      let text = String(line).replacing("\u{1B}[31m!", with: "!").replacing("\u{1B}[0m", with: "")
      #expect(text.columns <= max(40, width), "\(text)")
      #expect(!text.contains("\u{1B}") && !text.contains("\u{202E}"))
    }
    #expect(lines[0].count < max(40, width) + 40)
  }

  @Test(arguments: [
    ("", 0, ""), ("disk full", 9, "disk full"), ("disk full", 8, "disk ..."), ("漢字漢字", 6, "漢..."),
  ])
  func textsAreCut(_ text: String, _ width: Int, _ cut: String) {
    #expect(text.cut(to: width, with: "...") == cut)
  }

  @Test func aHeapOfMarksIsCut() {
    let heap = "e" + String(repeating: "\u{301}", count: 3000)
    #expect((heap + "nd").cut(to: 80, with: "...") == "...")
    #expect("e\u{301}nd 👩‍👩‍👧‍👦".columns == 6)
  }

  @Test func namesAreCutInside() {
    #expect(
      "closure at Daemon/File.swift:42".cutInside(to: 20, with: "…") == "closure at….swift:42")
    #expect("Database".cutInside(to: 8, with: "…") == "Database")
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

/// What standard error can show.
@Suite("TimelineDisplay") struct TimelineDisplayTests {
  @Test(
    arguments: [
      (["LANG": "C.UTF-8", "TERM": "xterm"], .colour),
      (["LANG": "de_DE.utf8@euro", "TERM": "xterm"], .colour),
      (["LANG": "C.UTF-8"], .blocks), (["LANG": "C.UTF-8", "TERM": "dumb"], .blocks),
      (["LANG": "C.UTF-8", "TERM": "xterm", "NO_COLOR": "1"], .blocks),
      (["LANG": "C.UTF-8", "LC_ALL": "C", "TERM": "xterm"], .plain),
      (["LANG": "C.UTF-8", "LC_ALL": "", "LC_CTYPE": "POSIX", "TERM": "xterm"], .plain),
      (["LC_CTYPE": "en_GB.UTF-8", "NO_COLOR": "", "TERM": "xterm"], .colour),
      (["LANG": "de_DE.ISO-8859-1", "TERM": "xterm"], .plain), (["TERM": "xterm"], .plain),
      ([:], .plain),
    ] as [([String: String], LifecycleTimeline.Style)])
  func styles(_ variables: [String: String], _ style: LifecycleTimeline.Style) {
    #expect(TimelineDisplay(terminal: 80, variables).style == style)
  }

  @Test func widths() {
    let widths = [0, 1, 132, 500].map { TimelineDisplay(terminal: $0, [:]).width }
    #expect(widths == [80, 1, 132, 160])
  }
}
