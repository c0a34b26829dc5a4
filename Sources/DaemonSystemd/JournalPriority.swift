/// How urgent a journal entry is: the levels of syslog(3), the lowest number the most urgent.
///
///     journal.write("Disk almost full", .warning)
///
/// A lesser value is more urgent, so `priority <= .error` reads "an error or worse". Source: sd-daemon(3),
/// systemd.journal-fields(7).
public enum JournalPriority: UInt8, CaseIterable, Comparable, Sendable {
  /// 0: the system is unusable. The journal shows it on every terminal.
  case emergency = 0
  /// 1: something must be done at once.
  case alert
  /// 2: a critical condition.
  case critical
  /// 3: an error.
  case error
  /// 4: a warning.
  case warning
  /// 5: normal, and worth knowing.
  case notice
  /// 6: information; what a line without a prefix counts as.
  case info
  /// 7: for those who debug.
  case debug

  public static func < (left: JournalPriority, right: JournalPriority) -> Bool {
    left.rawValue < right.rawValue
  }
}
