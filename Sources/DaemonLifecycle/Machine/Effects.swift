// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The work of the shell after an input.
///
/// Calls and messages last until they are taken. The rest is rare, and of one critical section, which takes it whole.
struct Effects: ~Copyable, Sendable {
  /// A message to be sent outside of the lock, in order.
  enum Message: Sendable {
    /// For the sinks.
    case fact(LifecycleFact)
    /// A step begins: for streams and mocks.
    case announced(LifecycleStep, LifecycleCause, at: MonotonicTime)
    /// For streams and mocks; a health check's for mocks alone.
    indirect case reported(LifecycleReport, isHealthCheck: Bool)
    /// For the poster.
    indirect case answered(LifecyclePost, LifecycleReport)
    /// For the callers of the launch.
    indirect case launchEnded(LifecycleReport, to: @Sendable (LifecycleReport) -> Void)
    /// For streams, which end, and for the callers that wait for the end.
    indirect case exited(LifecycleExit, to: @Sendable (LifecycleExit) -> Void)
    /// For a test that waits until what is before it has been sent.
    case reached(Sleeper)
  }

  /// Calls that are to begin, in order; some may have been withdrawn since.
  var starts = Deque<CallID>()
  var messages: [Message] = []
  /// Whether anybody receives `.announced`.
  var announces = true

  /// The status with which to exit at once, under the lock: for the third signal.
  var exitsWith: Int32?
  /// Observers that have left the table.
  var removed: [Member] = []
  /// The number of a health check that has begun, for which Swift's executors are to be checked.
  var healthRound: UInt64?
  /// What is to be done with the bodies of work, in order.
  var works: [(id: ObserverID, runner: (any AnyObject & Sendable)?, action: Work.Action)] = []
  /// Work that has stalled: the log shows where threads wait.
  var stalled: String?
  /// The callers of hooks to be cancelled.
  var cancels: [any AnyObject & Sendable] = []
  /// Whether the process is overdue, and is to be ended with its exit's code.
  var isOverdue = false

  /// Whether there is more than calls and messages, which is rare.
  var hasRare: Bool {
    !removed.isEmpty || !cancels.isEmpty || !works.isEmpty || stalled != nil || healthRound != nil
      || isOverdue || exitsWith != nil
  }

  mutating func publish(_ fact: LifecycleFact?) {
    if let fact { messages.append(.fact(fact)) }
  }

  mutating func answer(
    _ post: LifecyclePost, _ cause: LifecycleCause = LifecycleCause(.api),
    entries: [LifecycleReport.Entry] = []
  ) {
    messages.append(.answered(post, LifecycleReport(cause: cause, entries: entries)))
  }

  /// Takes everything but calls and messages.
  mutating func takeRare() -> Effects {
    var taken = Effects()
    swap(&taken, &self)
    swap(&taken.starts, &starts)
    swap(&taken.messages, &messages)
    swap(&taken.announces, &announces)
    return taken
  }
}
