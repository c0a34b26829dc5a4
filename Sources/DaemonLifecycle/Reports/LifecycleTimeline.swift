// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// A rendering of a report that shows which observer did what, and when.
///
/// Its description is plain text: a title, and one line for each row. Of more than twelve rows it shows those with
/// problems and the slowest. Texts come from type names and errors, so control characters in them are escaped.
struct LifecycleTimeline: Sendable, CustomStringConvertible {
  struct Segment {
    /// The words for its completion and for its failure: `saved`, `save`.
    let words: (done: String, act: String)
    /// The time since the timeline's beginning.
    let offset: Duration
    /// How long it took; zero when it was skipped.
    let duration: Duration
    let outcome: LifecycleReport.Outcome
    let errorText: String?

    /// Whether it failed, did not end in time, or could not be called.
    var isProblem = false
    /// Whether it had not ended when the delivery went on.
    var isUnfinished: Bool { if case .abandoned = outcome { true } else { false } }
  }

  struct Row {
    let observer: String
    /// Whether the row is an observer's; false for what happened before the first hook.
    let isObserver: Bool
    /// The segments in the order in which they ended; those of one observer may overlap.
    private(set) var segments: [Segment]
    /// The total time of all segments.
    private(set) var duration: Duration
    private(set) var isProblem: Bool

    init(_ observer: String, isObserver: Bool = true, _ first: Segment) {
      self.observer = observer
      self.isObserver = isObserver
      segments = [first]
      duration = first.duration
      isProblem = first.isProblem
    }

    mutating func add(_ segment: Segment) {
      segments.append(segment)
      duration += segment.duration
      if segment.isProblem { isProblem = true }
    }
  }

  private let report: LifecycleReport
  /// The time from the request to the end of the last hook.
  let duration: Duration
  /// One row for each observer, in the order in which their first hooks ended.
  private(set) var rows: [Row] = []

  /// The time that a termination had, the exit grace included.
  var budget: Duration? { report.span?.budget }
  var problemCount: Int { report.failures.count }
  /// The observer, or the body, whose hooks took the longest.
  var slowest: Row? { rows.filter(\.isObserver).max { $0.duration < $1.duration } }

  init(_ report: LifecycleReport) {
    self.report = report
    let (began, ended) = Self.extent(of: report)
    duration = began.duration(to: ended)
    rows = (report.span?.prelude ?? []).map { Row($0, since: began) }
    // Sorted: the first use of a dictionary searches all conformances of the program, a tenth of a stop.
    let entries = report.entries
    let sorted = entries.indices.sorted {
      (entries[$0].registration, $0) < (entries[$1].registration, $1)
    }
    var found: [(first: Int, row: Row)] = []
    for index in sorted {
      let segment = Segment(entries[index], since: began)
      let last = found.last.map { entries[$0.first].registration }
      if last == entries[index].registration {
        found[found.count - 1].row.add(segment)
      } else {
        found.append((index, Row(entries[index].observer, segment)))
      }
    }
    rows += found.sorted { $0.first < $1.first }.map(\.row)
  }

  private static func extent(
    of report: LifecycleReport
  ) -> (began: MonotonicTime, ended: MonotonicTime) {
    if let span = report.span { return (span.began, span.ended) }
    let zero = MonotonicTime(nanoseconds: 0)
    return (report.entries.map(\.began).min() ?? zero, report.entries.map(\.ended).max() ?? zero)
  }

  // MARK: Text

  var description: String { rendered() }

  /// The title: `terminate (SIGTERM from pid 1 uid 0) in 312 ms of 90 s, 1 of 6 hooks failed`.
  private var title: String {
    let event = report.span?.event ?? "delivered"
    var title =
      "\(event.shown(40)) (\(report.cause.description.shown(100))) in \(duration.forReading)"
    if let budget { title += " of \(budget.forReading)" }
    if report.span?.isHurried == true { title += ", hurried by a second signal" }
    let failed = problemCount
    if failed > 0 { title += ", \(failed) of \(report.entries.count) hooks failed" }
    return title
  }

  func rendered(maximumRows: Int = 12) -> String {
    let worst = rows.indices.sorted { isWorse(rows[$0], than: rows[$1]) }
    let shown = worst.prefix(maximumRows).sorted().map { rows[$0] }
    let names = shown.map { $0.observer.shown(30, keepingEnd: true) }
    let times = shown.map(\.time)
    let nameWidth = names.map(\.count).max() ?? 0
    let timeWidth = times.map(\.count).max() ?? 0
    var lines = [title]
    for (index, row) in shown.enumerated() {
      let name = names[index] + String(repeating: " ", count: nameWidth - names[index].count)
      let space = String(repeating: " ", count: timeWidth - times[index].count)
      let mark = row.isProblem ? "!" : " "
      lines.append(
        "\(mark) \(name)  |\(bar(row))  \(space)\(times[index])  \(row.text.shown(100))")
    }
    let rest = worst.dropFirst(maximumRows).map { rows[$0] }
    if let slowest = rest.map(\.duration).max() {
      let problems = rest.count(where: \.isProblem)
      lines.append(
        "  and \(rest.count) more, \(slowest.forReading) at most"
          + (problems == 0 ? "" : ", \(problems) of them with problems"))
    }
    return lines.joined(separator: "\n")
  }

  private func isWorse(_ a: Row, than b: Row) -> Bool {
    a.isProblem == b.isProblem ? a.duration > b.duration : a.isProblem
  }

  /// Twenty characters for the whole time: `#` for a hook, `x` for one with a problem, `>` for one that had not ended.
  private func bar(_ row: Row) -> String {
    let width = 20
    var cells = Array(repeating: Character(" "), count: width)
    func cell(_ time: Duration) -> Int { Int((time / duration * Double(width)).rounded()) }
    // Problems are drawn over successes.
    let segments = row.segments.filter { $0.duration > .zero && duration > .zero }
    for segment in segments.filter({ !$0.isProblem }) + segments.filter(\.isProblem) {
      let first = min(max(0, cell(segment.offset)), width - 1)
      let last = min(max(first, cell(segment.offset + segment.duration) - 1), width - 1)
      for index in first...last { cells[index] = segment.isProblem ? "x" : "#" }
      if segment.isUnfinished { cells[last] = ">" }
    }
    return String(cells)
  }
}

extension LifecycleTimeline.Segment {
  fileprivate init(_ entry: LifecycleReport.Entry, since began: MonotonicTime) {
    words = Self.words(for: entry)
    offset = began.duration(to: entry.began)
    duration = entry.duration
    outcome = entry.outcome
    errorText = entry.errorText
    isProblem = entry.severity > 0
  }

  private static func words(for entry: LifecycleReport.Entry) -> (done: String, act: String) {
    guard let type = entry.notification else { return ("ended", "end") }
    if let row = NotificationKind(type)?.row { return (row.done, row.act) }
    return ("\(type)", "\(type)")
  }

  /// The segment in words: `saved`, `save failed: disk full`, `pause abandoned: did not end`.
  fileprivate var text: String {
    switch outcome {
    case .completed: words.done
    case .failed(let error): "\(words.act) failed: \(errorText ?? "\(error)")"
    case .timedOut: "\(words.act) timed out"
    case .abandoned(.waitingForExecutor): "\(words.act) abandoned: never got its executor"
    case .abandoned: "\(words.act) abandoned: did not end"
    case .skipped(.busy): "\(words.act) skipped: busy with an abandoned hook"
    case .skipped(.outOfTime): "\(words.act) skipped: out of time"
    case .skipped(.noThread): "\(words.act) skipped: no thread"
    case .skipped(.overtaken): "\(words.act) skipped: overtaken"
    case .skipped(.earlierHookFailed): "\(words.act) skipped: an earlier hook failed"
    }
  }
}

extension LifecycleTimeline.Row {
  fileprivate init(_ prelude: LifecycleSpan.Prelude, since began: MonotonicTime) {
    let (name, words) =
      switch prelude.activity {
      case .drain: ("(drain)", (done: "served on", act: "drain"))
      case .overtaken(let event): ("(\(event))", (done: "had to end first", act: "end"))
      }
    let segment = LifecycleTimeline.Segment(
      words: words, offset: began.duration(to: prelude.began),
      duration: prelude.began.duration(to: prelude.ended), outcome: .completed, errorText: nil)
    self.init(name, isObserver: false, segment)
  }

  /// All segments in words, problems first, with the time of one that took most of the total.
  fileprivate var text: String {
    let isUnfinished = segments.contains(where: \.isUnfinished)
    let slowest = segments.max { $0.duration < $1.duration }?.duration ?? .zero
    var saysTime =
      !isProblem && slowest >= .milliseconds(10) && slowest.forReading != duration.forReading
    var parts: [String] = []
    for segment in segments.filter(\.isProblem) + segments.filter({ !$0.isProblem }) {
      // The hooks that were skipped because of one that has not ended are not listed.
      if isUnfinished, case .skipped(.busy) = segment.outcome { continue }
      var part = segment.text
      if saysTime, segment.duration == slowest {
        part += " (\(slowest.forReading))"
        saysTime = false
      }
      if part != parts.last { parts.append(part) }
    }
    return parts.joined(separator: ", ")
  }

  /// The total time; empty for an observer that was not called at all.
  fileprivate var time: String {
    let wasCalled = segments.contains { if case .skipped = $0.outcome { false } else { true } }
    return wasCalled ? duration.forReading : "-"
  }
}

extension String {
  /// The text on one line, escaped and cut to a number of characters: its beginning, or its beginning and its end.
  fileprivate func shown(_ limit: Int, keepingEnd: Bool = false) -> String {
    // Counted in scalars, since one character may consist of any number of them.
    if unicodeScalars.count <= limit { return VisibleText.line(self) }
    let room = limit - 3
    let end = keepingEnd ? room / 2 : 0
    let (first, last) = (unicodeScalars.prefix(room - end), unicodeScalars.suffix(end))
    return VisibleText.line(String(first)) + "..." + VisibleText.line(String(last))
  }
}
