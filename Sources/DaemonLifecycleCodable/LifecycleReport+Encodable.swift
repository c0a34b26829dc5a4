// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
import DaemonSystemd

// MARK: Report

/// Encodes a report: its cause, and the entries in the order in which the hooks ended.
///
/// ```json
/// {
///   "cause": {"origin": "signal", "signal": "SIGTERM", "pid": 1, "uid": 0, "coalesced": 1},
///   "entries": [
///     {"observer": "Poller", "registration": 1, "notification": "DidEnterBackground", "outcome": "completed",
///      "offsetNanoseconds": 8000, "durationNanoseconds": 40213000},
///     {"observer": "Database", "registration": 2, "notification": "ShouldSaveState", "outcome": "failed",
///      "error": {"type": "StateError", "text": "disk full"}, "offsetNanoseconds": 40300000,
///      "durationNanoseconds": 270104000}
///   ],
///   "isOvertaken": false,
///   "span": {
///     "event": "terminate", "durationNanoseconds": 312000000, "budgetNanoseconds": 90000000000,
///     "isHurried": false, "prelude": []
///   }
/// }
/// ```
///
/// - `isOvertaken`: whether a termination overtook the delivery, so that not all of it was done.
/// - `span`: the event that the report covers, as in the timeline; a post has none. `budgetNanoseconds`: the time that
///   a termination had. `isHurried`: whether a second signal shortened it. `prelude`: what happened before the first
///   hook: a drain, or the transition that was under way, by name:
///   `{"overtaken": "reload", "offsetNanoseconds": 0, "durationNanoseconds": 1000000}`.
/// - Offsets are from the report's beginning. Hooks with the same `registration` belong to the same observer.
/// - `notification` is missing for the body of `run`.
/// - `outcome` is `completed`, `failed` (with `error`), `timedOut`, `abandoned` (with `progress`) or `skipped` (with
///   `reason`).
extension LifecycleReport: Encodable {
  private enum Key: String, CodingKey { case cause, entries, isOvertaken, span }

  /// Encodes the cause, the entries and the span.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(cause, forKey: .cause)
    var list = container.nestedUnkeyedContainer(forKey: .entries)
    for (entry, offset) in zip(entries, offsets) {
      var one = list.nestedContainer(keyedBy: EntryKey.self)
      try entry.encode(to: &one)
      try one.encode(offset.saturatedNanoseconds, forKey: .offsetNanoseconds)
    }
    try container.encode(isOvertaken, forKey: .isOvertaken)
    guard let span else { return }
    var one = container.nestedContainer(keyedBy: SpanKey.self, forKey: .span)
    try span.encode(to: &one)
  }
}

// MARK: Span

private enum SpanKey: String, CodingKey {
  case event, durationNanoseconds, budgetNanoseconds, isHurried, prelude, overtaken
  case offsetNanoseconds
}

extension LifecycleSpan {
  fileprivate func encode(to container: inout KeyedEncodingContainer<SpanKey>) throws {
    try container.encode(event, forKey: .event)
    let duration = began.duration(to: ended)
    try container.encode(duration.saturatedNanoseconds, forKey: .durationNanoseconds)
    try container.encodeIfPresent(budget?.saturatedNanoseconds, forKey: .budgetNanoseconds)
    try container.encode(isHurried, forKey: .isHurried)
    var list = container.nestedUnkeyedContainer(forKey: .prelude)
    for part in prelude {
      var one = list.nestedContainer(keyedBy: SpanKey.self)
      if case .overtaken(let event) = part.activity { try one.encode(event, forKey: .overtaken) }
      let offset = began.duration(to: part.began)
      let duration = part.began.duration(to: part.ended)
      try one.encode(offset.saturatedNanoseconds, forKey: .offsetNanoseconds)
      try one.encode(duration.saturatedNanoseconds, forKey: .durationNanoseconds)
    }
  }
}

// MARK: Entry

/// Keys of an entry, and of its outcome, which is part of the same object.
private enum EntryKey: String, CodingKey {
  case observer, registration, notification, offsetNanoseconds, durationNanoseconds
  case outcome, error, progress, reason
}

extension LifecycleReport.Entry {
  fileprivate func encode(to container: inout KeyedEncodingContainer<EntryKey>) throws {
    try container.encode(observer, forKey: .observer)
    try container.encode(registration, forKey: .registration)
    try container.encodeIfPresent(notification.map(Self.name), forKey: .notification)
    try container.encode(duration.saturatedNanoseconds, forKey: .durationNanoseconds)
    switch outcome {
    case .completed: try container.encode("completed", forKey: .outcome)
    case .failed(let error):
      try container.encode("failed", forKey: .outcome)
      try container.encode(RecordedError(error, text: errorText), forKey: .error)
    case .timedOut: try container.encode("timedOut", forKey: .outcome)
    case .abandoned(let progress):
      try container.encode("abandoned", forKey: .outcome)
      try container.encode("\(progress)", forKey: .progress)
    case .skipped(let reason):
      try container.encode("skipped", forKey: .outcome)
      try container.encode("\(reason)", forKey: .reason)
    }
  }

  /// The type's name, with its module where it could be confused with a notification of the package.
  private static func name(_ type: any LifecycleNotification.Type) -> String {
    let isMistakable = NotificationKind.allCases.contains {
      "\($0.row.type)" == "\(type)" && $0.row.type != type
    }
    return isMistakable ? String(reflecting: type) : "\(type)"
  }
}

// MARK: Exit

/// Encodes an exit: its status, its cause and its reports.
///
/// ```json
/// {"cause":{…},"code":0,"report":{…}}
/// {"cause":{…},"code":70,"error":{…},"failedLaunch":{…},"report":{…}}
/// ```
///
/// `failedLaunch` is the report of a launch that ended the daemon, `overtakenPause` that of a pause that the stop cut
/// off, `error` the error that the body of `run` threw.
extension LifecycleExit: Encodable {
  private enum Key: String, CodingKey {
    case code, cause, report, failedLaunch, overtakenPause, error
  }

  /// Encodes the status, the cause and the reports.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(code, forKey: .code)
    try container.encode(cause, forKey: .cause)
    try container.encode(report, forKey: .report)
    try container.encodeIfPresent(failedLaunch, forKey: .failedLaunch)
    try container.encodeIfPresent(overtakenPause, forKey: .overtakenPause)
    try container.encodeIfPresent(error.map { RecordedError($0) }, forKey: .error)
  }
}
