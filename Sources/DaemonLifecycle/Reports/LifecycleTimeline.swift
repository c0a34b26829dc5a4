// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// A rendering of a report that shows which observer did what, and when.
///
/// Its description is plain text: a title, and one line for each row. Of more than twelve rows it shows those with
/// problems and the slowest. Texts come from type names and errors, so control characters in them are escaped.
struct LifecycleTimeline: Sendable, CustomStringConvertible {
  struct Row {
    /// The index of its first entry in the report.
    fileprivate let first: Int
    /// What happened before the first hook; `nil` for an observer's row.
    let words: String?
    /// In the order in which they ended; they may overlap.
    fileprivate(set) var entries: [LifecycleReport.Entry]

    var observer: String { entries[0].observer }
    var duration: Duration { entries.reduce(.zero) { $0 + $1.duration } }
    var isProblem: Bool { entries.contains { $0.severity > 0 } }
  }

  private let report: LifecycleReport
  let span: LifecycleSpan
  var duration: Duration { span.duration }
  /// One row for each observer, in the order in which their first hooks ended.
  private(set) var rows: [Row] = []

  init(_ report: LifecycleReport) {
    self.report = report
    let entries = report.entries
    span = report.wholeSpan
    for (index, activity) in span.prelude.enumerated() {
      let entry = LifecycleReport.Entry(
        notification: WillTerminate.self, outcome: .completed,
        duration: activity.began.duration(to: activity.ended),
        name: .given(activity.name), began: activity.began)
      rows.append(Row(first: index - span.prelude.count, words: activity.words, entries: [entry]))
    }
    // Sorted: the first use of a dictionary searches all conformances of the program, a tenth of a stop.
    let sorted = entries.indices.sorted {
      (entries[$0].registration, $0) < (entries[$1].registration, $1)
    }
    for index in sorted {
      let isSame = rows.last.map {
        $0.words == nil && $0.entries[0].registration == entries[index].registration
      }
      if isSame == true {
        rows[rows.count - 1].entries.append(entries[index])
      } else {
        rows.append(Row(first: index, words: nil, entries: [entries[index]]))
      }
    }
    rows.sort { $0.first < $1.first }
  }

  // MARK: Text

  var description: String { rendered() }

  /// The title: `terminate (SIGTERM from pid 1 uid 0) in 312 ms of 90 s, 1 of 6 hooks failed`.
  private var title: String {
    let event = VisibleText.excerpt(span.event, limit: 40)
    let cause = VisibleText.excerpt(report.cause.description, limit: 100)
    var title = "\(event) (\(cause)) in \(duration.forReading)"
    if let budget = span.budget { title += " of \(budget.forReading)" }
    if span.isHurried { title += ", hurried by a second signal" }
    return title + report.failuresInWords
  }

  func rendered(maximumRows: Int = 12) -> String {
    let worst = rows.indices.sorted { isWorse(rows[$0], than: rows[$1]) }
    let shown = worst.prefix(maximumRows).sorted().map { rows[$0] }
    let names = shown.map { VisibleText.excerpt($0.observer, limit: 29, end: 14) }
    let times = shown.map(\.time)
    let nameWidth = names.map(\.count).max() ?? 0
    let timeWidth = times.map(\.count).max() ?? 0
    var text = title
    for (index, row) in shown.enumerated() {
      let name = names[index] + String(repeating: " ", count: nameWidth - names[index].count)
      let space = String(repeating: " ", count: timeWidth - times[index].count)
      let mark = row.isProblem ? "!" : " "
      text += "\n\(mark) \(name)  |\(bar(row))  \(space)\(times[index])  "
      text += VisibleText.excerpt(row.text, end: 100)
    }
    let rest = worst.dropFirst(maximumRows).map { rows[$0] }
    if let slowest = rest.map(\.duration).max() {
      let problems = rest.count(where: \.isProblem)
      text += "\n  and \(rest.count) more, \(slowest.forReading) at most"
      if problems > 0 { text += ", \(problems) of them with problems" }
    }
    return text
  }

  private func isWorse(_ a: Row, than b: Row) -> Bool {
    a.isProblem == b.isProblem ? a.duration > b.duration : a.isProblem
  }

  /// Twenty characters for the whole time: `#` for a hook, `x` for one with a problem, `>` for one that had not ended.
  private func bar(_ row: Row) -> String {
    let width = 20
    var cells = Array(repeating: UInt8(ascii: " "), count: width)
    func cell(_ time: Duration) -> Int { Int((time / duration * Double(width)).rounded()) }
    // Problems are drawn over successes.
    let entries = row.entries.filter { $0.duration > .zero && duration > .zero }
    for entry in entries.filter({ $0.severity == 0 }) + entries.filter({ $0.severity > 0 }) {
      let offset = span.began.duration(to: entry.began)
      let first = min(max(0, cell(offset)), width - 1)
      let last = min(max(first, cell(offset + entry.duration) - 1), width - 1)
      for index in first...last { cells[index] = UInt8(ascii: entry.severity > 0 ? "x" : "#") }
      if entry.isUnfinished { cells[last] = UInt8(ascii: ">") }
    }
    return String(decoding: cells, as: UTF8.self)
  }
}

extension LifecycleReport.Entry {
  /// Whether it had not ended when the delivery went on.
  fileprivate var isUnfinished: Bool { if case .abandoned = outcome { true } else { false } }

  /// The entry in words: `saved`, `save failed: disk full`, `pause abandoned: did not end`.
  fileprivate var words: String {
    let row = NotificationKind(notification)?.row
    if outcome.isCompleted { return (row?.done ?? "\(notification)") + why }
    let noun = row?.noun ?? "\(notification)"
    return isLate ? "\(word)\(why)" : "\(noun) \(word)\(why)"
  }
}

extension LifecycleTimeline.Row {
  /// All entries in words, problems first. Without problems, the slowest of several has its time, from 10 ms on.
  fileprivate var text: String {
    if let words { return words }
    let isUnfinished = entries.contains(where: \.isUnfinished)
    let slowest = entries.reduce(Duration.zero) { max($0, $1.duration) }
    var saysTime =
      !isProblem && slowest >= .milliseconds(10) && slowest.forReading != duration.forReading
    // Not joined from a list, whose first use searches all conformances of the program, a tenth of a stop.
    var (text, last) = ("", "")
    for entry in entries.filter({ $0.severity > 0 }) + entries.filter({ $0.severity == 0 }) {
      // Hooks that were skipped because an abandoned one still runs are not listed.
      if isUnfinished, case .skipped(.busy) = entry.outcome { continue }
      var part = entry.words
      if saysTime, entry.duration == slowest {
        part += " (\(slowest.forReading))"
        saysTime = false
      }
      if part == last { continue }
      // The author's text may be a sentence.
      if text.hasSuffix(".") { text.removeLast() }
      text += text.isEmpty ? part : ", \(part)"
      last = part
    }
    return text
  }

  /// The total time; `-` for an observer that was not called at all.
  fileprivate var time: String {
    entries.allSatisfy { $0.outcome.isSkipped } ? "-" : duration.forReading
  }
}
