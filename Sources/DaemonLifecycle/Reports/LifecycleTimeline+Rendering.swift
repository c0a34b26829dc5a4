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
  /// and `>` the end of a hook that had not ended. Long names and texts are cut, and control characters are escaped.
  ///
  /// - Parameters:
  ///   - width: How many columns a line may have, at least 40; below 60 there are no bars. The title may have
  ///     more, rather than leave out how it ended.
  ///   - maximumRows: Of more rows, those with problems and the slowest are shown, and a line says how many others
  ///     there are.
  ///   - style: What bars are made of.
  public func rendered(width: Int = 80, maximumRows: Int = 12, style: Style = .plain) -> String {
    let width = min(max(width, 40), 1000)
    let (shown, rest) = divided(maximumRows)
    let columns = Columns(shown, total: duration, width: width, style: style)
    var text = title(width: width)
    for row in shown {
      text += "\n"
      text += columns.line(row)
    }
    if rest.count > 0 { text += "\n  and \(rest)" }
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

  /// Those with problems and the slowest, in their order, and what is to be said of the others.
  private func divided(_ maximum: Int) -> (shown: [Row], rest: Rest) {
    var rest = Rest()
    if rows.count <= maximum { return (rows, rest) }
    // The worst so far, the worst first: few, so that many rows are looked at once each.
    var worst: [Int] = []
    for index in rows.indices {
      var place = worst.count
      while place > 0, isWorse(rows[index], than: rows[worst[place - 1]]) { place -= 1 }
      if place < maximum { worst.insert(index, at: place) }
      if worst.count > max(0, maximum) { worst.removeLast() }
    }
    var shown: [Row] = []
    for index in rows.indices {
      if worst.contains(index) { shown.append(rows[index]) } else { rest.add(rows[index]) }
    }
    return (shown, rest)
  }

  private func isWorse(_ a: Row, than b: Row) -> Bool {
    a.isProblem == b.isProblem ? a.duration > b.duration : a.isProblem
  }

  /// `288 more, 4 ms at most`.
  private struct Rest: CustomStringConvertible {
    private(set) var count = 0
    private var problems = 0
    private var slowest = Duration.zero

    mutating func add(_ row: Row) {
      count += 1
      if row.isProblem { problems += 1 }
      slowest = max(slowest, row.duration)
    }

    var description: String {
      let failed = problems == 0 ? "" : ", \(problems) of them with problems"
      return "\(count) more, \(slowest.forReading) at most\(failed)"
    }
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
    _ rows: [LifecycleTimeline.Row], total: Duration, width: Int, style: LifecycleTimeline.Style
  ) {
    self.style = style
    self.total = total
    var (longestName, longestTime) = (0, 0)
    for row in rows {
      longestName = max(longestName, row.observer.onOneLine.columns)
      longestTime = max(longestTime, Self.time(of: row).utf8.count)
    }
    nameWidth = min(longestName, width * 3 / 10)
    timeWidth = longestTime
    barWidth = width < 60 ? 0 : min(width / 4, 40)
    let bar = barWidth == 0 ? 0 : 2 + 1 + barWidth
    textWidth = max(8, width - 2 - nameWidth - bar - 2 - timeWidth - 2)
  }

  func line(_ row: LifecycleTimeline.Row) -> String {
    var line = row.isProblem ? "! " : "  "
    line += row.observer.onOneLine.cutInside(to: nameWidth, with: ellipsis).padded(to: nameWidth)
    if barWidth > 0 {
      line += style == .plain ? "  |" : "  ▏"
      line += TimelineBar(row, total: total, width: barWidth, style: style).drawn
    }
    let time = Self.time(of: row)
    line += String(repeating: " ", count: 2 + timeWidth - time.utf8.count)
    line += time
    line += "  "
    line += row.text.cut(to: textWidth, with: ellipsis)
    return style == .colour && row.isProblem ? "\u{1B}[31m\(line)\u{1B}[0m" : line
  }

  /// None for an observer that was not called at all.
  private static func time(of row: LifecycleTimeline.Row) -> String {
    for segment in row.segments {
      if case .skipped = segment.outcome { continue }
      return row.duration.forReading
    }
    return "-"
  }
}
