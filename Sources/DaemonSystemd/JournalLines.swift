// SPDX-License-Identifier: Apache-2.0
/// The rendering of an entry as lines for standard error.
///
/// A newline or a NUL ends a line in the journal. Each line has the prefix, so that no text from outside can fake a
/// line of another priority. Without prefixes, all lines but the first are indented, so that none can fake another
/// entry. Control characters are escaped.
enum JournalLines {
  /// Each line of the message with the prefix `<N>`; without a newline at the end.
  static func prefixed(_ entry: JournalEntry) -> String {
    lines(of: entry.message).map { "<\(entry.priority.level)>\($0)" }.joined(separator: "\n")
  }

  /// The message, without a newline at the end.
  static func plain(_ entry: JournalEntry) -> String {
    lines(of: entry.message).joined(separator: "\n    ")
  }

  private static func lines(of message: String) -> [String] {
    var lines = message.utf8.split(omittingEmptySubsequences: false) { $0 == 10 || $0 == 0 }
      .map { VisibleText.lines(String(decoding: $0, as: UTF8.self)) }
    if lines.count > 1, lines.last == "" { lines.removeLast() }
    return lines
  }
}
