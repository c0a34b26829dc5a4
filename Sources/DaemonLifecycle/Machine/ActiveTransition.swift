// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// Why the registry's transition under way happens, and what has ended so far. There is one exactly while the
/// registry is in a transition that has begun.
struct ActiveTransition: Sendable {
  /// How often a service manager is told.
  static let progressInterval = Duration.seconds(1)

  let number: UInt64
  let kind: LifecycleTransition
  let cause: LifecycleCause
  let began: MonotonicTime
  private(set) var entries: [LifecycleReport.Entry] = []
  /// Until when the service manager was asked to wait.
  var askedUntil: MonotonicTime?
  /// A termination has overtaken it: not all of it is done.
  var isOvertaken = false
  /// When a service manager is told next how far it has come; the distant future where there is none.
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
