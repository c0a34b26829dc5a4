// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// What the shell is to do after an input, kind by kind, in this order.
struct Effects: ~Copyable, Sendable {
  /// Something to be sent outside of the lock, in order.
  enum Message: Sendable {
    /// For the sinks.
    case fact(LifecycleFact)
    /// A step begins: for streams and recorders.
    case announced(LifecycleStep, LifecycleCause)
    /// For streams and recorders; a health check's for recorders alone.
    indirect case reported(LifecycleReport, isHealthCheck: Bool)
    /// For whoever has posted.
    indirect case answered(PostID, LifecycleReport)
    /// For whoever has launched.
    indirect case launchEnded(LifecycleReport)
    /// For whoever waits for the end.
    indirect case exited(LifecycleExit)
  }

  /// A hook to call: the first may go to the driver that asks for its next.
  struct Start: Sendable {
    let call: CallID
    let observer: ObserverID
    /// Its place among the observer's hooks.
    let hook: Int
    let delivery: Delivery.Constants
  }

  /// At once, under the lock: the third signal.
  var exitsWith: Int32?
  /// Observers that the shell lets go of.
  var removed: [ObserverID] = []
  /// Calls that will not begin.
  var withdrawn: [CallID] = []
  var messages: [Message] = []
  /// A health check that has begun: ask Swift's executors.
  var healthRound: UInt64?
  var cancelsBody = false
  /// Calls whose drivers are to be cancelled.
  var cancels: [CallID] = []
  var starts: [Start] = []
  /// What may hold the last reference to an object of the user's.
  var released: [any Sendable] = []
  /// The process still lives, and is to be ended with its exit.
  var isOverdue = false

  /// Whether anything but `starts` is to be done, which is rare.
  var hasMoreThanStarts: Bool {
    !messages.isEmpty || !withdrawn.isEmpty || !removed.isEmpty || !released.isEmpty
      || !cancels.isEmpty || cancelsBody || healthRound != nil || isOverdue || exitsWith != nil
  }

  mutating func publish(_ fact: LifecycleFact) { messages.append(.fact(fact)) }

  /// None, with room for as many as there were.
  mutating func removeAll() {
    exitsWith = nil
    healthRound = nil
    cancelsBody = false
    isOverdue = false
    removed.clear()
    withdrawn.clear()
    messages.clear()
    cancels.clear()
    starts.clear()
    released.clear()
  }
}

extension Array {
  /// Nothing is done for what is empty.
  fileprivate mutating func clear() { if !isEmpty { removeAll(keepingCapacity: true) } }
}
