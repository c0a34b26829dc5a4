import DaemonSystemd

// What a report keeps when it is written down and read again, perhaps by another process: times are then from its
// beginning.

extension LifecycleReport {
  /// What the report is of, as a whole.
  package struct RecordedSpan: Sendable {
    /// What it is called: `terminate`.
    package let event: String
    package let duration: Duration
    package let budget: Duration?
    package let isHurried: Bool
    /// What came before the first hook.
    package let prelude: [RecordedPrelude]

    package init(
      event: String, duration: Duration, budget: Duration?, isHurried: Bool,
      prelude: [RecordedPrelude]
    ) {
      self.event = event
      self.duration = duration
      self.budget = budget
      self.isHurried = isHurried
      self.prelude = prelude
    }
  }

  package struct RecordedPrelude: Sendable {
    /// The name of what was overtaken; `nil` for the drain.
    package let overtaken: String?
    package let offset: Duration
    package let duration: Duration

    package init(overtaken: String?, offset: Duration, duration: Duration) {
      self.overtaken = overtaken
      self.offset = offset
      self.duration = duration
    }
  }

  package var recordedSpan: RecordedSpan? { span.map { RecordedSpan($0) } }

  /// A report that was written down.
  package init(
    cause: LifecycleCause, entries: [Entry], span: RecordedSpan?, isOvertaken: Bool
  ) {
    self.init(cause: cause, entries: entries)
    self.span = span.map { LifecycleSpan($0) }
    self.isOvertaken = isOvertaken
  }

  /// When each entry's call began, from the report's beginning.
  package var offsets: [Duration] {
    let times = entries.map(\.began)
    guard let beginning = span?.began ?? times.min() else { return [] }
    return times.map { beginning.duration(to: $0) }
  }
}

extension LifecycleReport.Entry {
  /// One that was written down.
  package init(
    recorded observer: String, registration: UInt64,
    notification: (any LifecycleNotification.Type)?, notificationName: String?,
    outcome: LifecycleReport.Outcome, offset: Duration, duration: Duration, errorText: String?
  ) {
    self.init(
      notification: notification, outcome: outcome, duration: duration,
      name: .recorded(ObserverName.Recorded(observer, notificationName)), errorText: errorText,
      began: MonotonicTime.zero.advanced(by: offset), registration: registration)
  }
}

extension LifecycleReport.RecordedSpan {
  fileprivate init(_ span: LifecycleSpan) {
    event = span.event
    duration = span.began.duration(to: span.ended)
    budget = span.budget
    isHurried = span.isHurried
    prelude = span.prelude.map { part in
      let overtaken: String? = if case .overtaken(let event) = part.activity { event } else { nil }
      return LifecycleReport.RecordedPrelude(
        overtaken: overtaken, offset: span.began.duration(to: part.began),
        duration: part.began.duration(to: part.ended))
    }
  }
}

extension LifecycleSpan {
  fileprivate convenience init(_ recorded: LifecycleReport.RecordedSpan) {
    self.init(
      event: recorded.event, began: .zero, ended: .zero.advanced(by: recorded.duration),
      budget: recorded.budget, isHurried: recorded.isHurried,
      prelude: recorded.prelude.map { part in
        let began = MonotonicTime.zero.advanced(by: part.offset)
        return Prelude(
          activity: part.overtaken.map { .overtaken($0) } ?? .drain, began: began,
          ended: began.advanced(by: part.duration))
      })
  }
}

extension MonotonicTime {
  fileprivate static let zero = MonotonicTime(nanoseconds: 0)
}
