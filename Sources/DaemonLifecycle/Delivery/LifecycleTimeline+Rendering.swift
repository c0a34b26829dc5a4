// How a timeline looks: a title, and a line for each row that is shown.
extension LifecycleTimeline {
  /// What bars are made of.
  public enum Style: Sendable, Hashable, CaseIterable {
    /// ASCII, but for what names and errors have of their own: for files, pipes and the journal.
    case plain
    /// Block characters: for a terminal with UTF-8.
    case blocks
    /// Block characters, and rows with a problem in red.
    case colour
  }

  /// The first line: `terminate (SIGTERM from pid 1 uid 0) in 312 ms of 90 s, 1 of 6 hooks failed`.
  public var title: String { title(width: 200) }

  /// Plain, in lines of 80 columns: ``rendered(width:maximumRows:style:)``.
  public var description: String { rendered() }

  /// The title and the rows, separated by newlines, without one at the end.
  ///
  /// A row has a mark (`!` for a problem), the observer, a bar in proportion to the whole time, the time in its hooks,
  /// and what it did. In a bar of plain characters `#` is time in a hook, `.` a little of it, `x` time of one that went wrong,
  /// and `>` the end of a hook that had not ended. Long names and texts are cut, and control characters are spaces.
  ///
  /// - Parameters:
  ///   - width: How many columns a line may have, at least 40; below 60 there are no bars.
  ///   - maximumRows: Of more rows, those with problems and the slowest are shown, and a line says how many others
  ///     there are.
  ///   - style: What bars are made of.
  public func rendered(width: Int = 80, maximumRows: Int = 12, style: Style = .plain) -> String {
    let width = min(max(width, 40), 1000)
    let shown = shownRows(maximumRows)
    let columns = Columns(shown.map { rows[$0] }, in: self, width: width, style: style)
    var text = title(width: width)
    for index in shown { text += "\n" + columns.line(rows[index]) }
    if shown.count < rows.count { text += "\n  " + remainder(without: shown) }
    return text
  }

  func title(width: Int) -> String {
    var end = " in \(duration.forReading)"
    if let budget { end += " of \(budget.forReading)" }
    if isHurried { end += ", hurried by a second signal" }
    if problemCount > 0 { end += ", \(problemCount) of \(hookCount) hooks failed" }
    let event = event ?? "delivered"
    let room = max(24, width - event.count - end.count - 3)
    return "\(event) (\(cause.description.onOneLine.cut(to: room, with: "...")))\(end)"
  }

  // MARK: Which rows

  /// Those with problems and the slowest, in their order.
  private func shownRows(_ maximum: Int) -> [Int] {
    let maximum = max(0, maximum)
    if rows.count <= maximum { return Array(rows.indices) }
    // The worst so far, the worst first: few, so that many rows are looked at once each.
    var worst: [Int] = []
    for index in rows.indices {
      let place = worst.firstIndex { isWorse(rows[index], than: rows[$0]) } ?? worst.endIndex
      if place < maximum { worst.insert(index, at: place) }
      if worst.count > maximum { worst.removeLast() }
    }
    return worst.sorted()
  }

  private func isWorse(_ a: Row, than b: Row) -> Bool {
    a.isProblem == b.isProblem ? a.duration > b.duration : a.isProblem
  }

  /// `and 288 more, 4 ms at most`.
  private func remainder(without shown: [Int]) -> String {
    let shown = Set(shown)
    let others = rows.indices.lazy.filter { !shown.contains($0) }.map { rows[$0] }
    let slowest = others.map(\.duration).max() ?? .zero
    let problems = others.count(where: \.isProblem)
    let failed = problems == 0 ? "" : ", \(problems) of them with problems"
    return "and \(rows.count - shown.count) more, \(slowest.forReading) at most\(failed)"
  }
}

/// Where the columns of a rendered timeline are.
private struct Columns {
  private let style: LifecycleTimeline.Style
  private let total: Duration
  private let nameWidth: Int
  private let timeWidth: Int
  /// 0: no bars.
  private let barWidth: Int
  private let textWidth: Int
  private var ellipsis: String { style == .plain ? "..." : "…" }

  init(
    _ rows: [LifecycleTimeline.Row], in timeline: LifecycleTimeline, width: Int,
    style: LifecycleTimeline.Style
  ) {
    self.style = style
    total = timeline.duration
    let longestName = rows.map { $0.observer.onOneLine.columns }.max() ?? 0
    nameWidth = min(longestName, width * 3 / 10)
    timeWidth = rows.map { Self.time(of: $0).count }.max() ?? 0
    barWidth = width < 60 ? 0 : min(width / 4, 40)
    let bar = barWidth == 0 ? 0 : 2 + 1 + barWidth
    textWidth = max(8, width - 2 - nameWidth - bar - 2 - timeWidth - 2)
  }

  func line(_ row: LifecycleTimeline.Row) -> String {
    let name = row.observer.onOneLine.cutInside(to: nameWidth, with: ellipsis)
    var line = row.isProblem ? "! " : "  "
    line += name.padded(to: nameWidth)
    if barWidth > 0 {
      line += style == .plain ? "  |" : "  ▏"
      line += TimelineBar(row, total: total, width: barWidth, style: style).drawn
    }
    let time = Self.time(of: row)
    line += "  " + String(repeating: " ", count: timeWidth - time.count) + time
    line += "  " + row.text.cut(to: textWidth, with: ellipsis)
    return style == .colour && row.isProblem ? "\u{1B}[31m\(line)\u{1B}[0m" : line
  }

  /// None for an observer that was not called at all.
  private static func time(of row: LifecycleTimeline.Row) -> String {
    let isCalled = row.segments.contains {
      if case .skipped = $0.outcome { false } else { true }
    }
    return isCalled ? row.duration.forReading : "-"
  }
}
