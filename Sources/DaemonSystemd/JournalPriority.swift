// SPDX-License-Identifier: Apache-2.0
/// The priority of a journal entry: a level of syslog(3), of which 0 is the most urgent.
///
/// ```swift
/// Journal.writeLine("Disk almost full", .warning)
/// ```
///
/// Source: sd-daemon(3), systemd.journal-fields(7).
public enum JournalPriority: Int, Sendable {
  /// Level 0: the system is unusable. The journal shows the message on every terminal.
  case emergency
  /// Level 1: immediate action is required.
  case alert
  /// Level 2: a critical condition.
  case critical
  /// Level 3: an error.
  case error
  /// Level 4: a warning.
  case warning
  /// Level 5: a normal but significant event.
  case notice
  /// Level 6: information. A line without a prefix has this level.
  case info
  /// Level 7: information for debugging.
  case debug
}
