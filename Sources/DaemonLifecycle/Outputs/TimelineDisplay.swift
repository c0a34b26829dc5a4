import CLinux
import DaemonSystemd

/// How a timeline is shown on standard error.
struct TimelineDisplay: Equatable {
  let style: LifecycleTimeline.Style
  let width: Int

  /// For a pipe, a file and the journal, whose lines are not on a terminal when they are written.
  static let plain = TimelineDisplay(style: .plain, width: 100)

  /// What a terminal can show: block characters where the locale says UTF-8, colour unless `NO_COLOR` or
  /// `TERM=dumb` says no.
  ///
  /// - Parameter columns: What the terminal says it has; 0 where it does not say.
  init(terminal columns: Int, _ variables: [String: String]) {
    width = columns == 0 ? 80 : min(columns, 160)
    let isUTF8 = Self.isUTF8(variables)
    let terminal = variables["TERM"] ?? ""
    let hasColour =
      (variables["NO_COLOR"] ?? "").isEmpty && !terminal.isEmpty && terminal != "dumb"
    style = !isUTF8 ? .plain : hasColour ? .colour : .blocks
  }

  /// What setlocale(3) would find: the first that says anything.
  private static func isUTF8(_ variables: [String: String]) -> Bool {
    for name in ["LC_ALL", "LC_CTYPE", "LANG"] {
      guard let locale = variables[name], !locale.isEmpty else { continue }
      guard let dot = locale.utf8.firstIndex(of: UInt8(ascii: ".")) else { return false }
      let encoding = locale[dot...].lowercased()
      return encoding.hasPrefix(".utf-8") || encoding.hasPrefix(".utf8")
    }
    return false
  }

  private init(style: LifecycleTimeline.Style, width: Int) {
    self.style = style
    self.width = width
  }

  /// Looked at when there is something to show: a terminal's size changes.
  static func ofStandardError(_ variables: [String: String]) -> TimelineDisplay {
    guard isatty(STDERR_FILENO) == 1 else { return plain }
    return TimelineDisplay(
      terminal: Int(clinux_terminal_columns(STDERR_FILENO)), variables)
  }
}
