// SPDX-License-Identifier: Apache-2.0
/// An entry as lines for standard error.
///
/// The journal takes a newline and a NUL for the end of a line. Each line gets the prefix, so that no text
/// from outside can pretend to be a line of another priority. Where there are no prefixes, every line but the first is
/// indented, so that none can pretend to be another entry. Control characters are escaped.
enum JournalLines {
  /// `<N>` and the line, for each line; without a newline at the end.
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
