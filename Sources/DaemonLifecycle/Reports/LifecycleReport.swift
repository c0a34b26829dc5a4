// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// A report of one event, such as a pause with its save: what each hook did and how long it took.
///
/// ```swift
/// for entry in report.problems { print(entry) }
/// // Database, ShouldSaveState: abandoned after 11 s: did not end
/// ```
public struct LifecycleReport: Sendable, CustomStringConvertible {
  /// The outcome of a hook's call. Minor versions may add cases.
  #if hasAttribute(nonexhaustive)
    @nonexhaustive
  #endif
  public enum Outcome: Equatable, Sendable {
    /// The hook returned in time.
    case completed
    /// The hook threw.
    case failed(any Error)
    /// The hook was cancelled, as a rule at its deadline, and ended within the cancellation grace.
    case timedOut
    /// The hook was cancelled, and did not end; the delivery went on without it.
    case abandoned(AbandonedAt)
    /// The hook was not called.
    case skipped(SkipReason)

    /// Whether an abandoned hook had begun. Minor versions may add cases.
    #if hasAttribute(nonexhaustive)
      @nonexhaustive
    #endif
    public enum AbandonedAt: Sendable, Hashable {
      /// It did not begin, since its actor was busy. It will not be called any more.
      case waitingForExecutor
      /// It had begun, and was running. A hook of a class on the main actor may also have waited for that actor.
      case running
    }

    /// Why a hook was not called. Minor versions may add cases.
    #if hasAttribute(nonexhaustive)
      @nonexhaustive
    #endif
    public enum SkipReason: Sendable, Hashable {
      /// An earlier hook of this observer was abandoned and has not ended.
      case busy
      /// The time of the stop was used up.
      case outOfTime
      /// No thread was free to run it on in time.
      case noThread
      /// A stop has overtaken the delivery. If the hook was called before, its end is in the stop's report.
      case overtaken
      /// An earlier hook for the foreground did not complete, so this work did not begin.
      case earlierHookFailed
    }

    /// Compares two outcomes. Two errors are equal when their types and their texts are.
    public static func == (a: Self, b: Self) -> Bool {
      switch (a, b) {
      case (.completed, .completed), (.timedOut, .timedOut): true
      case (.failed(let a), .failed(let b)): type(of: a) == type(of: b) && "\(a)" == "\(b)"
      case (.abandoned(let a), .abandoned(let b)): a == b
      case (.skipped(let a), .skipped(let b)): a == b
      default: false
      }
    }
  }

  /// The entry for one call of a hook, or for the begin or the end of work.
  public struct Entry: Equatable, Sendable, CustomStringConvertible {
    /// The notification's type.
    public let notification: any LifecycleNotification.Type
    /// The outcome of the call.
    public let outcome: Outcome
    /// The time from when the call was scheduled to its end; zero when it was skipped.
    public let duration: Duration
    let name: ObserverName
    /// The error that was thrown, with its text, rendered where it was thrown.
    var failure: Failure?
    /// The time at which it began; for a hook that was not called, the time at which its turn would have been.
    var began = MonotonicTime(nanoseconds: 0)
    /// The number of the observer's registration.
    package internal(set) var registration: UInt64 = 0

    /// The observer's name: the one that was given, its type, or `closure at Module/File.swift:42`.
    public var observer: String { name.description }

    /// Compares two entries: the observer, the notification and the outcome, whatever the times.
    public static func == (a: Self, b: Self) -> Bool {
      a.notification == b.notification && a.outcome == b.outcome && a.observer == b.observer
    }

    /// Whether work threw the error once asked to end, or before its turn: it does not decide the exit status.
    package var isLate: Bool { failure?.isLate ?? false }
    var severity: Int { isLate ? 0 : outcome.severity }
    var ended: MonotonicTime { began.advanced(by: duration) }

    /// The entry on one line, with control characters escaped:
    /// `Poller, ShouldSaveState: failed after 200 ms: disk full`.
    public var description: String {
      let subject = "\(observer), \(notification)"
      if outcome.isSkipped { return VisibleText.line("\(subject): skipped\(why)") }
      // An error thrown before the step took no time in it.
      let time = isLate && duration == .zero ? "" : " after \(duration.forReading)"
      return VisibleText.line("\(subject): \(word)\(time)\(why)")
    }

    /// An error that work throws once asked to end, or before its turn, is no failure of the step.
    var word: String { isLate ? "threw" : outcome.word }

    /// The observer and the error of a failed hook; else the whole description.
    var reason: String {
      guard case .failed = outcome, let failure else { return description }
      return VisibleText.line("\(observer): \(failure.text)")
    }

    /// Whether the hook has refused a new configuration.
    var isRefusal: Bool {
      severity > 0 && NotificationKind(notification) == .shouldReload
    }

    /// The reason after a colon, if there is one.
    var why: String {
      let reason: String? =
        switch outcome {
        case .completed: nil
        case .timedOut: failure.flatMap { $0.error is CancellationError ? nil : $0.text }
        case .failed(let error): failure?.text ?? "\(error)"
        case .abandoned(.running): "did not end"
        case .abandoned(.waitingForExecutor): "never got its executor"
        case .skipped(.busy): "busy with an abandoned hook"
        case .skipped(.outOfTime): "out of time"
        case .skipped(.noThread): "no thread in time"
        case .skipped(.overtaken): "overtaken"
        case .skipped(.earlierHookFailed): "an earlier hook failed"
        }
      return reason.map { ": \($0)" } ?? ""
    }
  }

  /// The cause of the delivery.
  public let cause: LifecycleCause
  /// One entry for each hook, in the order in which they ended.
  public let entries: [Entry]
  /// Whether a termination overtook the delivery, so that not all of it was done.
  package internal(set) var isOvertaken = false
  /// Whether it reports a retry, whose problems the log already has.
  var isRetry = false
  /// The event as a whole; `nil` unless the report is that of a whole transition.
  package var span: LifecycleSpan?

  package init(cause: LifecycleCause, entries: [Entry]) {
    self.cause = cause
    self.entries = entries
  }

  /// The event, by its name in the journal (`LIFECYCLE_EVENT`), for a metric: `background`, `reload`, `terminate`;
  /// `delivered` in a report that joins others, or that a post in a hook returned.
  public var event: String { wholeSpan.event }

  /// The time from a stop's request, or another event's first hook, to the end of the last hook.
  public var duration: Duration { wholeSpan.duration }

  /// The event as a whole, made from its entries where it is not known.
  var wholeSpan: LifecycleSpan {
    let zero = MonotonicTime(nanoseconds: 0)
    return span
      ?? LifecycleSpan(
        event: "delivered", began: entries.map(\.began).min() ?? zero,
        ended: entries.map(\.ended).max() ?? zero)
  }

  /// The entries that are not `completed`. An error of work that a pause or a stop has ended is one, though it has no other
  /// effect.
  public var problems: [Entry] { entries.filter { !$0.outcome.isCompleted } }

  /// The last outcome of an observer's hook for a notification, by the observer's name; `nil` if there is no such entry.
  ///
  /// ```swift
  /// #expect(report["orders", ShouldSaveState.self]?.outcome == .completed)
  /// ```
  public subscript(
    observer: String, notification: any LifecycleNotification.Type
  ) -> Entry? {
    entries.last { $0.notification == notification && $0.observer == observer }
  }

  /// The entries of hooks that failed, did not end in time, or could not be called.
  var failures: [Entry] { entries.filter { $0.severity > 0 } }
  /// `, 1 of 6 hooks failed`; empty when none failed.
  var failuresInWords: String {
    let count = failures.count
    return count == 0 ? "" : ", \(count) of \(entries.count) hooks failed"
  }
  /// The entries of hooks that have refused a new configuration, without the saves before it.
  var refusals: [Entry] { entries.filter(\.isRefusal) }

  /// The report as plain text for operators: a title, then one line for each observer with a bar, the time of its hooks
  /// and what they did. It is rendered at each access.
  ///
  /// ```swift
  /// print(result.report.timeline)
  /// // terminate (SIGTERM from pid 1 uid 0) in 312 ms of 90 s
  /// //   Poller    |###                    40 ms  paused
  /// //   Database  |   #################  270 ms  saved
  /// ```
  ///
  /// A subject logs the timeline of its termination: see ``LifecycleConfiguration/logging``.
  public var timeline: String { LifecycleTimeline(self).description }

  /// A sentence about a stop that has used more than four fifths of its time, since the next may be killed before it has
  /// saved; `nil` for any other event, and for a stop that a second signal has shortened.
  var timeWarning: String? {
    guard let span, let budget = span.budget, !span.isHurried else { return nil }
    let taken = span.began.duration(to: span.ended)
    guard taken > budget - budget / 5 else { return nil }
    let rows = LifecycleTimeline(self).rows.filter { $0.words == nil }
    let slowest = rows.max { $0.duration < $1.duration }
    let name =
      slowest.map { "; \(VisibleText.line($0.observer)) alone took \($0.duration.forReading)" }
      ?? ""
    return "The stop took \(taken.forReading) of its \(budget.forReading)\(name)."
  }

  var severity: Int { entries.map(\.severity).max() ?? 0 }
  /// The exit status of the first failure that has one.
  var exitStatus: Int32? { failures.lazy.compactMap { $0.failure?.exitStatus }.first }

  /// The cause, followed by one line for each entry.
  public var description: String {
    ([cause.description] + entries.map { "  " + $0.description }).joined(separator: "\n")
  }
}

extension LifecycleReport.Outcome {
  package var isCompleted: Bool { if case .completed = self { true } else { false } }
  var isSkipped: Bool { if case .skipped = self { true } else { false } }

  var word: String {
    switch self {
    case .completed: "completed"
    case .failed: "failed"
    case .timedOut: "timed out"
    case .abandoned: "abandoned"
    case .skipped: "skipped"
    }
  }

  /// The severity for the exit status: 0 for success, 1 for a failure, 2 for a hook that did not end in time.
  var severity: Int {
    switch self {
    case .completed, .skipped(.overtaken), .skipped(.earlierHookFailed): 0
    case .failed: 1
    case .timedOut, .abandoned, .skipped: 2
    }
  }
}
