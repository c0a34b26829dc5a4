// SPDX-License-Identifier: Apache-2.0
/// How urgent a journal entry is: the levels of syslog(3), the lowest number the most urgent.
///
/// ```swift
/// journal.write("Disk almost full", .warning)
/// ```
///
/// Source: sd-daemon(3), systemd.journal-fields(7).
public enum JournalPriority: Sendable {
  /// 0: the system is unusable. The journal shows it on every terminal.
  case emergency
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

  package var level: Int {
    switch self {
    case .emergency: 0
    case .alert: 1
    case .critical: 2
    case .error: 3
    case .warning: 4
    case .notice: 5
    case .info: 6
    case .debug: 7
    }
  }
}
