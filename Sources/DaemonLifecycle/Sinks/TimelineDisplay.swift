import CLinux
import Systemd

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
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { variables[$0] }
      .first { !$0.isEmpty }
    let isUTF8 =
      locale.map { locale in
        let encoding = locale.lowercased().split(separator: ".").dropFirst().first ?? ""
        return encoding.hasPrefix("utf-8") || encoding.hasPrefix("utf8")
      } ?? false
    let hasColour =
      (variables["NO_COLOR"] ?? "").isEmpty && !["", "dumb"].contains(variables["TERM"] ?? "")
    style = !isUTF8 ? .plain : hasColour ? .colour : .blocks
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
