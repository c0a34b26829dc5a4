import DaemonSystemd

// What of a report is written down: its times from its beginning.

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
  }

  package struct RecordedPrelude: Sendable {
    /// The name of what was overtaken; `nil` for the drain.
    package let overtaken: String?
    package let offset: Duration
    package let duration: Duration
  }

  package var recordedSpan: RecordedSpan? {
    guard let span else { return nil }
    let prelude = span.prelude.map { part in
      let overtaken: String? = if case .overtaken(let event) = part.activity { event } else { nil }
      return RecordedPrelude(
        overtaken: overtaken, offset: span.began.duration(to: part.began),
        duration: part.began.duration(to: part.ended))
    }
    return RecordedSpan(
      event: span.event, duration: span.began.duration(to: span.ended), budget: span.budget,
      isHurried: span.isHurried, prelude: prelude)
  }

  /// When each entry's call began, from the report's beginning.
  package var offsets: [Duration] {
    let times = entries.map(\.began)
    guard let beginning = span?.began ?? times.min() else { return [] }
    return times.map { beginning.duration(to: $0) }
  }
}
