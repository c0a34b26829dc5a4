// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A function that writes lines for systemd's journal.
public enum Journal {
  /// Writes a line on standard error: with its priority if the journal reads it, else after the program's name.
  ///
  /// ```swift
  /// Journal.writeLine("Could not read \(source)", .error)
  /// exit(78)
  /// ```
  ///
  /// The line belongs to the service even if the process ends at once. Control characters are escaped, as by
  /// ``VisibleText``. Any thread may call it, and it never waits: a line for which there is no room is dropped.
  ///
  /// - Parameters:
  ///   - text: The line.
  ///   - priority: Its priority. Default `info`.
  ///   - environment: The environment with systemd's variables. Default: this process's.
  /// - Returns: Whether all of it was written.
  @discardableResult
  public static func writeLine(
    _ text: String, _ priority: JournalPriority = .info, environment: ServiceEnvironment = .current
  ) -> Bool {
    let isJournal = StandardError.isJournal(environment)
    return StandardError.writeLine(
      isJournal ? text : "\(programName): \(text)", priority, isJournal: isJournal)
  }

  package static var programName: String { String(cString: clinux_program_name()) }
}
