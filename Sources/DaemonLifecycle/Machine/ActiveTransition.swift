// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The transition that is under way: its cause, and the entries so far. It exists exactly while the registry is in a
/// transition that has begun.
struct ActiveTransition: Sendable {
  /// The interval at which progress is sent to a service manager.
  static let progressInterval = Duration.seconds(1)

  let number: UInt64
  let kind: LifecycleTransition
  let cause: LifecycleCause
  let began: MonotonicTime
  private(set) var entries: [LifecycleReport.Entry] = []
  /// Whether a termination has overtaken it, so that not all of it is done.
  var isOvertaken = false
  /// Whether it notifies again of the foreground, for the second time or later.
  var isRetry = false
  /// The time at which progress is next sent to a service manager; the distant future where there is none.
  var progressDeadline = MonotonicTime.distantFuture

  init(_ plan: LifecycleRegistry.Plan, at now: MonotonicTime) {
    number = plan.transition
    kind = plan.kind
    cause = plan.cause
    began = now
  }

  var isPause: Bool { kind == .background || kind == .suspend }

  /// The first entries are taken as they are, not copied.
  mutating func add(_ new: [LifecycleReport.Entry]) {
    if entries.isEmpty { entries = new } else { entries += new }
  }
}
