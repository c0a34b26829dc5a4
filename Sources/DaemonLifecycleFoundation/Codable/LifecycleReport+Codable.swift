public import DaemonLifecycle

/// Keys of an entry, and of its outcome, which is part of the same object.
private enum EntryKey: String, CodingKey {
  case observer, registration, notification, offsetNanoseconds, durationNanoseconds
  case outcome, error, progress, reason
}

/// How a hook came out, as a word.
private enum OutcomeKind: String, Word {
  case completed, failed, timedOut, abandoned, skipped

  static var kind: String { "outcome" }
  var word: String { rawValue }
  init?(word: String) { self.init(rawValue: word) }

  var keys: [EntryKey] {
    switch self {
    case .completed, .timedOut: [.outcome]
    case .failed: [.outcome, .error]
    case .abandoned: [.outcome, .progress]
    case .skipped: [.outcome, .reason]
    }
  }
}

// MARK: Report

/// The cause, and the entries in the order in which the hooks ended.
///
///     {
///       "cause": {"origin": "signal", "signal": "SIGTERM", "pid": 1, "uid": 0, "coalesced": 1},
///       "entries": [
///         {"observer": "Poller", "registration": 1, "notification": "DidEnterBackground", "outcome": "completed",
///          "offsetNanoseconds": 8000, "durationNanoseconds": 40213000},
///         {"observer": "Database", "registration": 2, "notification": "ShouldSaveState", "outcome": "failed",
///          "error": {"type": "StateError", "text": "disk full"}, "offsetNanoseconds": 40300000,
///          "durationNanoseconds": 270104000}
///       ],
///       "isOvertaken": false,
///       "span": {
///         "event": "terminate", "durationNanoseconds": 312000000, "budgetNanoseconds": 90000000000,
///         "isHurried": false, "prelude": []
///       }
///     }
///
/// - `isOvertaken`: a termination came between, and not all was done.
/// - `span`: what the report is of, as the timeline has it; not for a post. `budgetNanoseconds`: of a termination.
///   `isHurried`: a second signal cut it short. `prelude`: what came before the first hook, a drain or, by name, what was
///   under way: `{"overtaken": "reload", "offsetNanoseconds": 0, "durationNanoseconds": 1000000}`.
/// - Offsets are from the report's beginning. Hooks of one `registration` are of one observer.
///
/// A decoded report has the same timeline.
///
/// Decoding throws a `DecodingError` for a key or a word that this version does not know.
extension LifecycleReport: Codable {
  private enum Key: String, CodingKey, CaseIterable { case cause, entries, isOvertaken, span }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(cause, forKey: .cause)
    var list = container.nestedUnkeyedContainer(forKey: .entries)
    for (entry, offset) in zip(entries, offsets) {
      var one = list.nestedContainer(keyedBy: EntryKey.self)
      try entry.encode(to: &one)
      try one.encode(offset.wholeNanoseconds, forKey: .offsetNanoseconds)
    }
    try container.encode(isOvertaken, forKey: .isOvertaken)
    try container.encodeIfPresent(recordedSpan, forKey: .span)
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Key.self, having: Key.allCases)
    self.init(
      cause: try container.decode(LifecycleCause.self, forKey: .cause),
      entries: try container.decode([Entry].self, forKey: .entries),
      span: try container.decodeIfPresent(RecordedSpan.self, forKey: .span),
      isOvertaken: try container.decode(Bool.self, forKey: .isOvertaken))
  }
}

// MARK: Span

extension LifecycleReport.RecordedSpan: Codable {
  private enum Key: String, CodingKey, CaseIterable {
    case event, durationNanoseconds, budgetNanoseconds, isHurried, prelude
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(event, forKey: .event)
    try container.encode(duration.wholeNanoseconds, forKey: .durationNanoseconds)
    try container.encodeIfPresent(budget?.wholeNanoseconds, forKey: .budgetNanoseconds)
    try container.encode(isHurried, forKey: .isHurried)
    try container.encode(prelude, forKey: .prelude)
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Key.self, having: Key.allCases)
    let budget = try container.decodeIfPresent(Int64.self, forKey: .budgetNanoseconds)
    self.init(
      event: try container.decode(String.self, forKey: .event),
      duration: .nanoseconds(try container.decode(Int64.self, forKey: .durationNanoseconds)),
      budget: budget.map { .nanoseconds($0) },
      isHurried: try container.decode(Bool.self, forKey: .isHurried),
      prelude: try container.decode([LifecycleReport.RecordedPrelude].self, forKey: .prelude))
  }
}

extension LifecycleReport.RecordedPrelude: Codable {
  private enum Key: String, CodingKey, CaseIterable {
    case overtaken, offsetNanoseconds, durationNanoseconds
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encodeIfPresent(overtaken, forKey: .overtaken)
    try container.encode(offset.wholeNanoseconds, forKey: .offsetNanoseconds)
    try container.encode(duration.wholeNanoseconds, forKey: .durationNanoseconds)
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Key.self, having: Key.allCases)
    self.init(
      overtaken: try container.decodeIfPresent(String.self, forKey: .overtaken),
      offset: .nanoseconds(try container.decode(Int64.self, forKey: .offsetNanoseconds)),
      duration: .nanoseconds(try container.decode(Int64.self, forKey: .durationNanoseconds)))
  }
}

// MARK: Entry

/// The observer, the notification (not for the body of `run`), the keys of the outcome, and how long it took.
///
///     {"durationNanoseconds":40213000,"notification":"ShouldSaveState","observer":"Poller","outcome":"completed",
///      "registration":1}
///
/// Durations are whole nanoseconds. Within a report there is `offsetNanoseconds` too. A decoded entry looks the same and knows the types of the package's
/// notifications; of others, and of the observer, it has the name.
extension LifecycleReport.Entry: Codable {
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: EntryKey.self)
    try encode(to: &container)
  }

  fileprivate func encode(to container: inout KeyedEncodingContainer<EntryKey>) throws {
    try container.encode(observer, forKey: .observer)
    try container.encode(registration, forKey: .registration)
    try container.encodeIfPresent(
      notification.map(NotificationTypes.name) ?? notificationName, forKey: .notification)
    try container.encode(duration.wholeNanoseconds, forKey: .durationNanoseconds)
    try outcome.encode(to: &container, errorText: errorText)
  }

  public init(from decoder: any Decoder) throws {
    let kind = try decoder.container(keyedBy: EntryKey.self).word(
      OutcomeKind.self, forKey: .outcome)
    let container = try decoder.container(
      keyedBy: EntryKey.self,
      having: kind.keys + [
        .observer, .registration, .notification, .offsetNanoseconds, .durationNanoseconds,
      ])
    let notification = try container.decodeIfPresent(String.self, forKey: .notification)
    let outcome = try LifecycleReport.Outcome(kind, container)
    var errorText: String?
    if case .failed(let error) = outcome { errorText = "\(error)" }
    self.init(
      recorded: try container.decode(String.self, forKey: .observer),
      registration: try container.decode(UInt64.self, forKey: .registration),
      notification: notification.flatMap(NotificationTypes.type),
      notificationName: notification, outcome: outcome,
      offset: .nanoseconds(
        try container.decodeIfPresent(Int64.self, forKey: .offsetNanoseconds) ?? 0),
      duration: .nanoseconds(try container.decode(Int64.self, forKey: .durationNanoseconds)),
      errorText: errorText)
  }
}

// MARK: Outcome

/// `outcome`, and what belongs to it; as a value of its own:
///
///     {"outcome":"completed"}
///     {"error":{"text":"disk full","type":"StateError"},"outcome":"failed"}
///     {"outcome":"timedOut"}
///     {"outcome":"abandoned","progress":"running"}
///     {"outcome":"skipped","reason":"overtaken"}
///
/// `progress` is `waitingForExecutor`, `running` or `unknown`; `reason` is `gone`, `busy`, `outOfTime`, `noThread` or
/// `overtaken`. The error of a failure becomes a ``RecordedError``.
extension LifecycleReport.Outcome: Codable {
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: EntryKey.self)
    try encode(to: &container, errorText: nil)
  }

  public init(from decoder: any Decoder) throws {
    let kind = try decoder.container(keyedBy: EntryKey.self).word(
      OutcomeKind.self, forKey: .outcome)
    try self.init(kind, try decoder.container(keyedBy: EntryKey.self, having: kind.keys))
  }

  fileprivate func encode(
    to container: inout KeyedEncodingContainer<EntryKey>, errorText: String?
  ) throws {
    let kind: OutcomeKind
    switch self {
    case .completed: kind = .completed
    case .failed(let error):
      kind = .failed
      try container.encode(RecordedError(error, text: errorText), forKey: .error)
    case .timedOut: kind = .timedOut
    case .abandoned(let progress):
      kind = .abandoned
      try container.encode(progress, forKey: .progress)
    case .skipped(let reason):
      kind = .skipped
      try container.encode(reason, forKey: .reason)
    }
    try container.encode(kind.word, forKey: .outcome)
  }

  fileprivate init(_ kind: OutcomeKind, _ container: KeyedDecodingContainer<EntryKey>) throws {
    switch kind {
    case .completed: self = .completed
    case .failed: self = .failed(try container.decode(RecordedError.self, forKey: .error))
    case .timedOut: self = .timedOut
    case .abandoned: self = .abandoned(try container.word(Progress.self, forKey: .progress))
    case .skipped: self = .skipped(try container.word(Reason.self, forKey: .reason))
    }
  }
}

extension Duration {
  /// Rounded down, and at most what an `Int64` holds: 292 years.
  var wholeNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (nanoseconds, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflows) = nanoseconds.addingReportingOverflow(attoseconds / 1_000_000_000)
    return overflow || overflows ? (seconds < 0 ? .min : .max) : sum
  }
}
