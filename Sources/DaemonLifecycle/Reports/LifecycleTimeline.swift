/// Who did what in a delivery and when: made for reading, and for the question who was slow.
///
///     print(result.report.timeline)
///     // terminate (SIGTERM from pid 1 uid 0) in 312 ms of 90 s
///     //   Poller    |###                    40 ms  paused
///     //   Database  |   #################  270 ms  saved
///
/// A subject that terminates logs its own, see ``LifecycleConfiguration/logsTimeline``. A plain value, made when
/// it is asked for; texts come from type names and errors, without control characters.
public struct LifecycleTimeline: Sendable, CustomStringConvertible {
  /// What a segment shows.
  public enum Activity: Sendable {
    /// A hook, for a notification of this type.
    case hook(any LifecycleNotification.Type)
    /// The body of `run`, from its cancellation to its end.
    case body
    /// The daemon was asked to end, and served on: ``LifecycleConfiguration/drainDelay``.
    case drain
    /// What was under way when the end was asked for, by its name in the journal (`reload`): the part of it that
    /// had begun had to end first.
    case overtaken(String)
  }

  /// One thing that an observer did.
  public struct Segment: Sendable, CustomStringConvertible {
    /// What it was.
    public let activity: Activity
    /// From the timeline's beginning.
    public let offset: Duration
    /// Zero when it was skipped.
    public let duration: Duration
    /// How it came out.
    public let outcome: LifecycleReport.Outcome
    /// What a failed hook's error says of itself.
    let errorText: String?

    /// It failed, did not end in time, or could not be called. An observer that is gone is none.
    public var isProblem: Bool { outcome.severity > 0 }
    var end: Duration { offset + duration }
  }

  /// What one observer did.
  public struct Row: Sendable {
    let name: Name
    /// In the order in which they ended; those of one observer may overlap.
    public internal(set) var segments: [Segment]
    /// The time of all segments together.
    public internal(set) var duration: Duration
    /// One of its segments is a problem.
    public internal(set) var isProblem: Bool

    enum Name: Sendable {
      case observer(ObserverName)
      case text(String)
    }

    /// It is no prelude.
    var isObserver: Bool { if case .observer = name { true } else { false } }
    /// As in the report: the observer's type, `closure at File.swift:42`, or `body`; `(drain)` and `(reload)` for
    /// what came before the first hook.
    public var observer: String {
      switch name {
      case .observer(let name): name.description
      case .text(let text): text
      }
    }
    /// Of its first segment, from the timeline's beginning.
    public var offset: Duration { segments.first?.offset ?? .zero }

    init(_ name: Name, _ first: Segment) {
      self.name = name
      segments = [first]
      duration = first.duration
      isProblem = first.isProblem
    }

    mutating func add(_ segment: Segment) {
      segments.append(segment)
      duration += segment.duration
      if segment.isProblem { isProblem = true }
    }
  }

  /// What it is of, by its name in the journal: `terminate`, `background`, `reload`; `nil` for the report of a post.
  public let event: String?
  /// What caused it.
  public let cause: LifecycleCause
  /// From the moment when it was asked for to the end of the last hook.
  public let duration: Duration
  /// What a termination could take, its exit grace included; `nil` for anything else. After a second signal: what
  /// that has left of it.
  public let budget: Duration?
  /// A second signal has cut the budget short.
  public let isHurried: Bool
  /// One for each observer that was called or should have been, in the order in which their first hooks ended.
  public let rows: [Row]
  /// How many hooks there were, and how many of them have a problem.
  let hookCount: Int
  let problemCount: Int

  /// The observer, or the body, whose hooks took the longest; `nil` where there is none.
  public var slowest: Row? {
    var slowest: Row?
    for row in rows where row.isObserver {
      if let other = slowest, other.duration >= row.duration { continue }
      slowest = row
    }
    return slowest
  }
}

extension LifecycleReport {
  /// Who did what, and when: for people. Made anew each time.
  public var timeline: LifecycleTimeline { LifecycleTimeline(self) }
}

// MARK: Made of a report

extension LifecycleTimeline {
  init(_ report: LifecycleReport) {
    let (began, ended) = Self.extent(of: report)
    let span = report.span
    event = span?.event
    cause = report.cause
    duration = began.duration(to: ended)
    budget = span?.budget
    isHurried = span?.isHurried ?? false
    hookCount = report.entries.count
    var rows: [Row] = []
    for prelude in span?.prelude ?? [] { rows.append(Row(prelude, since: began)) }
    var places: [UInt64: Int] = [:]
    var problemCount = 0
    for entry in report.entries {
      let segment = Segment(entry, since: began)
      if segment.isProblem { problemCount += 1 }
      if let place = places[entry.registration] {
        rows[place].add(segment)
      } else {
        places[entry.registration] = rows.count
        rows.append(Row(.observer(entry.name), segment))
      }
    }
    self.rows = rows
    self.problemCount = problemCount
  }

  private static func extent(
    of report: LifecycleReport
  ) -> (began: MonotonicTime, ended: MonotonicTime) {
    if let span = report.span { return (span.began, span.ended) }
    guard let first = report.entries.first else {
      return (MonotonicTime(nanoseconds: 0), MonotonicTime(nanoseconds: 0))
    }
    var (began, ended) = (first.began, first.ended)
    for entry in report.entries {
      began = min(began, entry.began)
      ended = max(ended, entry.ended)
    }
    return (began, ended)
  }
}

extension LifecycleTimeline.Segment {
  fileprivate init(_ entry: LifecycleReport.Entry, since began: MonotonicTime) {
    activity = entry.notification.map { .hook($0) } ?? .body
    offset = began.duration(to: entry.began)
    duration = entry.duration
    outcome = entry.outcome
    errorText = entry.errorText
  }
}

extension LifecycleTimeline.Row {
  fileprivate init(_ prelude: LifecycleSpan.Prelude, since began: MonotonicTime) {
    let segment = LifecycleTimeline.Segment(
      activity: prelude.activity, offset: began.duration(to: prelude.began),
      duration: prelude.began.duration(to: prelude.ended), outcome: .completed, errorText: nil)
    let name =
      switch prelude.activity {
      case .overtaken(let event): "(\(event))"
      default: "(drain)"
      }
    self.init(.text(name), segment)
  }
}

extension LifecycleReport.Entry {
  var ended: MonotonicTime { began.advanced(by: duration) }
}
