// SPDX-License-Identifier: Apache-2.0
public import DaemonSystemd

/// An entry of the log, as a custom handler receives it: ``LifecycleInterface/log(to:)``.
///
/// Its text and its fields are made when they are read, each time: a handler that drops entries by their priority formats
/// nothing.
public struct LifecycleLogEntry: Sendable {
  /// How urgent it is: a hook that did not complete is an `error`, a transition a `notice` or an `info`.
  public let priority: JournalPriority
  /// The kind of entry, 32 hexadecimal digits.
  let messageID: StaticString?
  /// Whether it is the timeline of a stop, which has several lines.
  private let hasLines: Bool
  private let makeText: @Sendable () -> String
  private let makeFields: @Sendable () -> [JournalField]

  init(
    _ priority: JournalPriority, _ messageID: StaticString?, hasLines: Bool = false,
    _ text: @autoclosure @escaping @Sendable () -> String,
    _ fields: @autoclosure @escaping @Sendable () -> [JournalField] = []
  ) {
    (self.priority, self.messageID, self.hasLines) = (priority, messageID, hasLines)
    (makeText, makeFields) = (text, fields)
  }

  /// Makes an entry, for a test of a handler.
  public init(
    _ message: String, priority: JournalPriority = .info,
    fields: [(name: String, value: String)] = []
  ) {
    self.init(priority, nil, message, fields)
  }

  /// The text: one line of at most some 4000 characters, or the timeline of a stop. Control characters are escaped.
  public var message: String {
    // Its parts may come from anywhere. Its end is kept, which has the outcome.
    hasLines
      ? makeText() : VisibleText.excerpt(VisibleText.line(makeText()), limit: 4000, end: 1000)
  }

  /// The fields that the journal would have, such as `MESSAGE_ID` and `LIFECYCLE_EVENT`; a name may occur more than
  /// once. <doc:RunningUnderSystemd> lists them.
  public var fields: [(name: String, value: String)] {
    (messageID.map { [("MESSAGE_ID", "\($0)")] } ?? []) + makeFields()
  }

  /// Writes the text to standard error, as one line of the package's or several.
  func writeLines(isJournal: Bool) {
    StandardError.writeText("lifecycle: \(message)", priority, isJournal: isJournal)
  }

  /// The same for the journal.
  var journalEntry: JournalEntry {
    JournalEntry(message, priority, messageID: messageID, fields: makeFields())
  }
}
