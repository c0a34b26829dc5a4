// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The hooks of the observers' types, as far as they were searched for.
///
/// A search is slow, and the machine can't make it. It asks for the searches that the next delivery needs, and goes on
/// with their results, so that a daemon that is never suspended, for example, does not pay for that.
struct KnownHooks: Sendable {
  /// Few: making a dictionary's type would take longer than searching them.
  private var types: [TypeHooks] = []
  /// The kinds that all types were searched for.
  private(set) var complete = NotificationKinds.all

  subscript(type: Int) -> TypeHooks { types[type] }

  /// The index of a type, which never changes.
  mutating func index(of type: any LifecycleObserver.Type) -> Int {
    if let index = types.lastIndex(where: { $0.type == type }) { return index }
    types.append(TypeHooks(type))
    complete = []
    return types.count - 1
  }

  /// The types that were not searched for these kinds.
  func missing(_ kinds: NotificationKinds) -> [TypeHooks] {
    types.filter { !$0.searched.isSuperset(of: kinds) }
  }

  mutating func learn(_ found: [TypeHooks]) {
    for hooks in found { types[index(of: hooks.type)].merge(hooks) }
    complete = types.reduce(.all) { $0.intersection($1.searched) }
  }
}

extension MachineObserver {
  /// Returns the index of the hook for notifications of a type, by which the shell finds it; `kind` is `nil` for custom
  /// ones.
  func hook(
    for notification: ObjectIdentifier, _ kind: NotificationKind?, in known: KnownHooks
  ) -> Int? {
    if let hookType {
      guard let kind, known[hookType].found.contains(kind) else { return nil }
      return kind.rawValue
    }
    for index in receives.indices {
      if receives[index] == notification { return index }
      // A health check is for observers with that hook only.
      if receives[index] == nil, kind != .checkHealth { return index }
    }
    return nil
  }

  /// Whether it has a hook for a step, as far as that is known.
  func receives(_ step: LifecycleStep, in known: KnownHooks) -> Bool {
    step.type.map { hook(for: ObjectIdentifier($0), step.kind, in: known) != nil } ?? false
  }
}

// A step whose receivers are not known waits for the searches.
extension LifecycleMachine {
  /// A step that waits: the registry's current one, or a health check within its frame. An object, since the type of a
  /// list of values is made at run time.
  final class Awaiting: Sendable {
    let plan: LifecycleRegistry.Plan
    let outer: Delivery.Outer?

    init(_ plan: LifecycleRegistry.Plan, outer: Delivery.Outer?) {
      (self.plan, self.outer) = (plan, outer)
    }
  }

  /// Whether it is known which members of a plan have a hook for its step.
  func isKnown(_ plan: LifecycleRegistry.Plan) -> Bool {
    guard let kind = plan.step.kind, !hooks.complete.contains(kind) else { return true }
    return plan.members.allSatisfy {
      registry.members[$0]?.hookType.map { hooks[$0].searched.contains(kind) } ?? true
    }
  }

  /// Has a plan wait for the searches for its step and the rest of its transition.
  mutating func awaitHooks(
    of plan: consuming LifecycleRegistry.Plan, outer: Delivery.Outer? = nil
  ) {
    effects.searches.insert(NotificationKinds(plan.step.kind))
    awaiting.append(Awaiting(plan, outer: outer))
    guard outer == nil else { return }
    for step in registry.steps { effects.searches.insert(NotificationKinds(step.kind)) }
  }

  /// Goes on with the steps that have waited for what was found.
  mutating func hooksFound(_ found: [TypeHooks]) {
    hooks.learn(found)
    let waiting = awaiting
    awaiting = waiting.filter { !isKnown($0.plan) }
    for step in waiting where isKnown(step.plan) {
      // The termination has ended a check.
      if step.outer == nil || health.isChecking { begin(step.plan, outer: step.outer) }
    }
  }
}
