// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// A transition, from its request to its end: which steps are left, and what has come of the others.
struct Transition: Sendable {
  let kind: LifecycleTransition
  let cause: LifecycleCause
  private let steps: [LifecycleStep]
  /// How many of them have begun, or were left out.
  private var passed = 0
  /// Whether a termination has overtaken it, so that not all of it is done.
  var isOvertaken = false
  /// The time of its first step; the distant future before that.
  var began = MonotonicTime.distantFuture
  private(set) var entries: [LifecycleReport.Entry] = []

  /// - Parameter steps: `nil` for those of its kind.
  init(_ kind: LifecycleTransition, _ cause: LifecycleCause, _ steps: [LifecycleStep]? = nil) {
    (self.kind, self.cause, self.steps) = (kind, cause, steps ?? kind.row.steps)
  }

  /// The next step; `nil`: none is left.
  var next: LifecycleStep? { passed < steps.count ? steps[passed] : nil }
  /// The steps that are left; none once a termination has overtaken it.
  var left: ArraySlice<LifecycleStep> { steps[passed...] }

  mutating func passNext() { passed += 1 }
  mutating func passAll() { passed = steps.count }
  /// In a launch: work that was passed begins before the foreground. A failed launch has no step left.
  mutating func returnToWork() { if next?.kind == .willEnterForeground { passed -= 1 } }

  var hasBegun: Bool { began != .distantFuture }
  var isPause: Bool { kind == .background || kind == .sleep }

  /// The first entries are taken as they are, not copied.
  mutating func add(_ new: [LifecycleReport.Entry]) {
    if entries.isEmpty { entries = new } else { entries += new }
  }
}
