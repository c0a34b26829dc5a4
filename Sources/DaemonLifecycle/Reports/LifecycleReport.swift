// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// What each hook did for one event and how long it took; every hook that starts has one entry.
///
///     for entry in report.problems { print(entry) }
///     // Database, ShouldSaveState: abandoned after 11 s (running)
public struct LifecycleReport: Sendable, CustomStringConvertible {
  /// The outcome of a hook's call.
  public enum Outcome: Sendable {
    /// It returned in time.
    case completed
    /// It threw.
    case failed(any Error)
    /// It was cancelled at its deadline, and ended then.
    case timedOut
    /// It was cancelled at its deadline, and did not end; the delivery has gone on without it.
    case abandoned(Progress)
    /// It was not called.
    case skipped(Reason)

    /// How far an abandoned hook had come.
    public enum Progress: Sendable, Hashable {
      /// It never began: its actor, or the main actor, was busy all the time. It never will.
      case waitingForExecutor
      /// It had begun.
      case running
      /// It may have begun, or it waits for a main actor that has never answered.
      case unknown
    }

    /// Why a hook was not called.
    public enum Reason: Sendable, Hashable {
      /// The observer no longer exists: nobody owned it. All that have one name have one entry.
      case gone
      /// An earlier hook of this observer was abandoned and has not ended.
      case busy
      /// The stop budget was used up.
      case outOfTime
      /// The system had no thread to run it on.
      case noThread
      /// A termination has overtaken the delivery.
      case overtaken
    }
  }

  /// The call of one hook, or the body of `run`.
  public struct Entry: Sendable, CustomStringConvertible {
    /// The notification's type; `nil` for the body of `run`.
    public let notification: (any LifecycleNotification.Type)?
    /// The outcome of the call.
    public let outcome: Outcome
    /// The time from the moment when its driver was enqueued to its end; zero when it was skipped.
    public let duration: Duration
    /// Changes where one entry stands for several observers that are gone.
    var name: ObserverName
    /// What the error of a failed hook says of itself, put into words where it was thrown.
    package internal(set) var errorText: String?
    /// When it began; a hook that was not called, when it would have been its turn.
    var began = MonotonicTime(nanoseconds: 0)
    /// Whose hook it was, by the number of its observer's registration.
    package internal(set) var registration: UInt64 = 0

    /// The observer's type, `closure at File.swift:42`, or `body`; `Connection (×3)` of three that are gone.
    public var observer: String { name.description }
    /// The name of the notification's type; `nil` for the body of `run`.
    public var notificationName: String? { notification.map { "\($0)" } }

    /// `Poller, ShouldSaveState: failed after 200 ms: disk full`, on one line whatever the error says.
    public var description: String { VisibleText.line(sentence) }

    /// The error of a failed hook and whose hook it was, else the whole sentence.
    var reason: String {
      VisibleText.line(errorText.map { "\(observer): \($0)" } ?? sentence)
    }

    private var sentence: String {
      let subject = notificationName.map { "\(observer), \($0)" } ?? observer
      let time = "after \(duration.forReading)"
      return switch outcome {
      case .completed: "\(subject): completed \(time)"
      case .failed(let error): "\(subject): failed \(time): \(errorText ?? "\(error)")"
      case .timedOut: "\(subject): timed out, ended \(time)"
      case .abandoned(let progress): "\(subject): abandoned \(time) (\(progress))"
      case .skipped(let reason): "\(subject): skipped (\(reason))"
      }
    }
  }

  /// The cause of the delivery.
  public let cause: LifecycleCause
  /// An entry for each hook, in the order in which they ended.
  public let entries: [Entry]
  /// A termination has overtaken what this reports on: not all of it was done.
  package internal(set) var isOvertaken = false
  /// What the report is of, as a whole; `nil` where it was put together from others.
  package var span: LifecycleSpan?

  package init(cause: LifecycleCause, entries: [Entry]) {
    self.cause = cause
    self.entries = entries
  }

  /// The entries that are not `completed`.
  public var problems: [Entry] { entries.filter { !$0.outcome.isCompleted } }

  /// What the hook of an observer for a notification has done, the last time; `nil` if there is no such entry.
  ///
  ///     #expect(report["orders", ShouldSaveState.self]?.outcome == .completed)
  ///
  /// - Parameters:
  ///   - observer: Its name: the one that it was given, or its type's.
  ///   - notification: The type of the notification.
  public subscript(
    observer: String, notification: any LifecycleNotification.Type
  ) -> Entry? {
    entries.last { $0.notification == notification && $0.observer == observer }
  }

  /// Those that failed, did not end in time, or could not be called.
  var failures: [Entry] { entries.filter { $0.outcome.severity > 0 } }

  /// The report as plain text for operators: a title, then a line for each observer with a bar, the time of its hooks
  /// and what they did. Rendered at each access.
  ///
  ///     print(result.report.timeline)
  ///     // terminate (SIGTERM from pid 1 uid 0) in 312 ms of 90 s
  ///     //   Poller    |###                    40 ms  paused
  ///     //   Database  |   #################  270 ms  saved
  ///
  /// A subject that terminates logs its own: see ``LifecycleConfiguration/timelineLogging``.
  public var timeline: String { LifecycleTimeline(self).description }

  /// When each entry's call began, from the report's beginning.
  package var offsets: [Duration] {
    let times = entries.map(\.began)
    guard let beginning = span?.began ?? times.min() else { return [] }
    return times.map { beginning.duration(to: $0) }
  }

  var severity: Int { entries.map(\.outcome.severity).max() ?? 0 }

  /// The cause, and a line for each entry.
  public var description: String {
    ([cause.description] + entries.map { "  " + $0.description }).joined(separator: "\n")
  }
}

extension LifecycleReport.Outcome: Equatable {
  /// Errors are the same when their types and what they say of themselves are.
  public static func == (a: Self, b: Self) -> Bool {
    switch (a, b) {
    case (.completed, .completed), (.timedOut, .timedOut): true
    case (.failed(let a), .failed(let b)): type(of: a) == type(of: b) && "\(a)" == "\(b)"
    case (.abandoned(let a), .abandoned(let b)): a == b
    case (.skipped(let a), .skipped(let b)): a == b
    default: false
    }
  }

  package var isCompleted: Bool { if case .completed = self { true } else { false } }

  /// How bad it is for an exit status: 0 well, 1 failed, 2 did not end in time.
  var severity: Int {
    switch self {
    case .completed, .skipped(.gone), .skipped(.overtaken): 0
    case .failed: 1
    case .timedOut, .abandoned, .skipped: 2
    }
  }
}
