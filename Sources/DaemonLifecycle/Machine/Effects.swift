// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The work of the shell after an input, by kind, in this order.
struct Effects: ~Copyable, Sendable {
  /// A message to be sent outside of the lock, in order.
  enum Message: Sendable {
    /// For the sinks.
    case fact(LifecycleFact)
    /// A step begins: for streams and recorders.
    case announced(LifecycleStep, LifecycleCause)
    /// For streams and recorders; a health check's for recorders alone.
    indirect case reported(LifecycleReport, isHealthCheck: Bool)
    /// For the poster.
    indirect case answered(PostID, LifecycleReport)
    /// For the caller of the launch.
    indirect case launchEnded(LifecycleReport)
    /// For callers that wait for the end.
    indirect case exited(LifecycleExit)
  }

  /// A hook to call. The first may go to the driver that requests its next call.
  struct Start: Sendable {
    let call: CallID
    let observer: ObserverID
    /// The index of the hook among the observer's.
    let hook: Int
    let delivery: Delivery.Constants
  }

  /// The status with which to exit at once, under the lock: for the third signal.
  var exitsWith: Int32?
  /// Observers that the shell removes.
  var removed: [ObserverID] = []
  /// Calls that will not begin.
  var withdrawn: [CallID] = []
  var messages: [Message] = []
  /// The number of a health check that has begun, for which Swift's executors are to be checked.
  var healthRound: UInt64?
  var cancelsBody = false
  /// Calls whose drivers are to be cancelled.
  var cancels: [CallID] = []
  var starts: [Start] = []
  /// The kinds that the shell is to search hooks for, of all types.
  var searches: NotificationKinds = []
  /// Values that may hold the last reference to a user's object.
  var released: [any Sendable] = []
  /// Whether the process is overdue, and is to be ended with its exit's code.
  var isOverdue = false

  /// Whether anything but `starts` is to be done, which is rare.
  var hasMoreThanStarts: Bool {
    !messages.isEmpty || !searches.isEmpty || !withdrawn.isEmpty || !removed.isEmpty
      || !released.isEmpty
      || !cancels.isEmpty || cancelsBody || healthRound != nil || isOverdue || exitsWith != nil
  }

  mutating func publish(_ fact: LifecycleFact) { messages.append(.fact(fact)) }

  /// Removes all, and keeps the capacity.
  mutating func removeAll() {
    exitsWith = nil
    healthRound = nil
    cancelsBody = false
    isOverdue = false
    searches = []
    removed.clear()
    withdrawn.clear()
    messages.clear()
    cancels.clear()
    starts.clear()
    released.clear()
  }
}

extension Array {
  /// Removes all elements, if there are any.
  fileprivate mutating func clear() { if !isEmpty { removeAll(keepingCapacity: true) } }
}
