import DaemonSystemd

/// One row's bar: cells that stand for equal parts of the whole time.
struct TimelineBar {
  /// What a cell shows.
  private enum Cell {
    case empty
    /// So many eighths, from the left: 1 to 8.
    case filled(Int)
    /// Time of a hook that went wrong.
    case problem
    /// Here the delivery has gone on without it.
    case unfinished
  }

  private var cells: [Cell]
  private let style: LifecycleTimeline.Style

  init(
    _ row: LifecycleTimeline.Row, total: Duration, width: Int, style: LifecycleTimeline.Style
  ) {
    self.style = style
    cells = Array(repeating: .empty, count: width)
    guard width > 0, total > .zero else { return }
    // What went wrong over what went well.
    for segment in row.segments where !segment.isProblem { paint(segment, total) }
    for segment in row.segments where segment.isProblem { paint(segment, total) }
  }

  /// Begins with the nearest whole cell, so that what comes one after the other does not look as if it overlapped. What
  /// took any time can be seen.
  private mutating func paint(_ segment: LifecycleTimeline.Segment, _ total: Duration) {
    guard segment.duration > .zero else { return }
    let first = min((eighths(segment.offset, total) + 4) / 8, cells.count - 1)
    let isWhole = style == .plain || segment.isProblem
    var end = eighths(segment.end, total)
    if isWhole { end = (end + 4) / 8 * 8 }
    // Within a cell it shows how long it was.
    if end <= (first + 1) * 8 {
      end = first * 8 + min(8, max(1, eighths(segment.duration, total)))
    }
    let last = min((end - 1) / 8, cells.count - 1)
    for index in first...last {
      cells[index] = segment.isProblem ? .problem : fill(index, min(8, end - index * 8))
    }
    if segment.isUnfinished { cells[last] = .unfinished }
  }

  /// The most that is in a cell of several segments.
  private func fill(_ index: Int, _ level: Int) -> Cell {
    if case .filled(let before) = cells[index], before > level { return cells[index] }
    return .filled(level)
  }

  /// Eighths of a cell from the left; within the bar.
  private func eighths(_ time: Duration, _ total: Duration) -> Int {
    let part = Double(time.saturatedNanoseconds) / Double(max(1, total.saturatedNanoseconds))
    return Int((min(1, max(0, part)) * Double(cells.count * 8)).rounded())
  }

  var drawn: String {
    var text = ""
    for cell in cells { text.append(style == .plain ? plain(cell) : block(cell)) }
    return text
  }

  private func plain(_ cell: Cell) -> Character {
    switch cell {
    case .empty: " "
    case .filled(let eighths): eighths < 4 ? "." : "#"
    case .problem: "x"
    case .unfinished: ">"
    }
  }

  private func block(_ cell: Cell) -> Character {
    switch cell {
    case .empty: " "
    case .filled(let eighths): ["▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"][eighths - 1]
    case .problem: "▒"
    case .unfinished: ">"
    }
  }
}
