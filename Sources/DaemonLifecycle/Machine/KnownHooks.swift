// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// Which hooks the observers' types have, as far as they were searched for.
///
/// A search is slow, and the machine can't make it. It asks for the searches that the next delivery needs, and goes on
/// with their results, so that a daemon that is never suspended, for example, does not pay for that.
struct KnownHooks: Sendable {
  /// What a search has found out about a type; it never changes.
  struct Entry: Sendable {
    var searched: NotificationKinds = []
    /// A subset of `searched`.
    var found: NotificationKinds = []
  }

  /// By the types' indexes, which the shell gives them.
  private var types: [Entry] = []
  /// The kinds that all types were searched for.
  private(set) var complete = NotificationKinds.all

  subscript(type: Int) -> Entry { types[type] }

  /// Makes room for a type, which is new or has observers already.
  mutating func insert(type: Int) {
    guard type >= types.count else { return }
    while type >= types.count { types.append(Entry()) }
    complete = []
  }

  /// Takes in what was found; other results for the same types may have come before.
  mutating func learn(_ found: [(type: Int, entry: Entry)]) {
    for (type, entry) in found {
      types[type].searched.formUnion(entry.searched)
      types[type].found.formUnion(entry.found)
    }
    complete = types.reduce(.all) { $0.intersection($1.searched) }
  }
}

// A step whose receivers are not known waits for the searches.
extension LifecycleMachine {
  /// A step that waits: the registry's current one, or a health check within its frame.
  struct Awaiting: Sendable {
    let plan: LifecycleRegistry.Plan
    let outer: Delivery.Outer?
  }

  /// Whether it is known which members of a plan have a hook for its step.
  private func isKnown(_ plan: LifecycleRegistry.Plan) -> Bool {
    guard let kind = plan.step.kind, !hooks.complete.contains(kind) else { return true }
    return plan.audience.members.allSatisfy {
      subscribers[$0]?.type.map { hooks[$0].searched.contains(kind) } ?? true
    }
  }

  /// Whether a plan has to wait. It does so with the searches for the rest of its transition, too.
  mutating func awaitsHooks(
    _ plan: LifecycleRegistry.Plan, outer: Delivery.Outer? = nil, _ effects: inout Effects
  ) -> Bool {
    guard !isKnown(plan), let kind = plan.step.kind else { return false }
    awaiting.append(Awaiting(plan: plan, outer: outer))
    effects.searches.insert(NotificationKinds(kind))
    if outer == nil {
      for kind in registry.steps.compactMap(\.kind) {
        effects.searches.insert(NotificationKinds(kind))
      }
    }
    return true
  }

  /// Goes on with the steps that have waited for what was found.
  mutating func hooksFound(
    _ found: [(type: Int, entry: KnownHooks.Entry)], at now: MonotonicTime,
    _ effects: inout Effects
  ) {
    hooks.learn(found)
    let waiting = awaiting
    awaiting = waiting.filter { !isKnown($0.plan) }
    for step in waiting where isKnown(step.plan) {
      if let outer = step.outer {
        // The termination has ended the check.
        guard health.isChecking else { continue }
        beginOutOfBand(step.plan, post: nil, outer: outer, at: now, &effects)
      } else {
        begin(step.plan, at: now, &effects)
      }
    }
  }
}
