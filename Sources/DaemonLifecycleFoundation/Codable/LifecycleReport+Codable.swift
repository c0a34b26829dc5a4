public import DaemonLifecycle

/// Keys of an entry, and of its outcome, which is part of the same object.
private enum EntryKey: String, CodingKey {
  case observer, notification, durationNanoseconds
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
///         {"observer": "Poller", "notification": "DidEnterBackground", "outcome": "completed",
///          "durationNanoseconds": 40213000},
///         {"observer": "Database", "notification": "ShouldSaveState", "outcome": "failed",
///          "error": {"type": "StateError", "text": "disk full"}, "durationNanoseconds": 270104000}
///       ],
///       "isOvertaken": false
///     }
///
/// `isOvertaken`: a termination came between, and not all was done.
///
/// Decoding throws a `DecodingError` for a key or a word that this version does not know.
extension LifecycleReport: Codable {
  private enum Key: String, CodingKey, CaseIterable { case cause, entries, isOvertaken }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(cause, forKey: .cause)
    try container.encode(entries, forKey: .entries)
    try container.encode(isOvertaken, forKey: .isOvertaken)
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Key.self, having: Key.allCases)
    self.init(
      cause: try container.decode(LifecycleCause.self, forKey: .cause),
      entries: try container.decode([Entry].self, forKey: .entries))
    isOvertaken = try container.decode(Bool.self, forKey: .isOvertaken)
  }
}

// MARK: Entry

/// The observer, the notification (not for the body of `run`), the keys of the outcome, and how long it took.
///
///     {"durationNanoseconds":40213000,"notification":"ShouldSaveState","observer":"Poller","outcome":"completed"}
///
/// Durations are whole nanoseconds. A decoded entry looks the same and knows the types of the package's
/// notifications; of others, and of the observer, it has the name.
extension LifecycleReport.Entry: Codable {
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: EntryKey.self)
    try container.encode(observer, forKey: .observer)
    try container.encodeIfPresent(
      notification.map(NotificationTypes.name) ?? notificationName, forKey: .notification)
    try container.encode(duration.wholeNanoseconds, forKey: .durationNanoseconds)
    try outcome.encode(to: &container, errorText: errorText)
  }

  public init(from decoder: any Decoder) throws {
    let kind = try decoder.container(keyedBy: EntryKey.self).word(
      OutcomeKind.self, forKey: .outcome)
    let container = try decoder.container(
      keyedBy: EntryKey.self, having: kind.keys + [.observer, .notification, .durationNanoseconds])
    let notification = try container.decodeIfPresent(String.self, forKey: .notification)
    let outcome = try LifecycleReport.Outcome(kind, container)
    var errorText: String?
    if case .failed(let error) = outcome { errorText = "\(error)" }
    self.init(
      recorded: try container.decode(String.self, forKey: .observer),
      notification: notification.flatMap(NotificationTypes.type),
      notificationName: notification, outcome: outcome,
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
