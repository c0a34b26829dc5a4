// SPDX-License-Identifier: Apache-2.0
/// An observer or a closure, as the machine knows it: without a reference to it.
final class Subscriber: Sendable {
  let id: ObserverID
  let phase: LifecyclePhase
  let name: ObserverName
  /// What each of its hooks is for, by its place; `nil`: for all notifications. It has at most one for each.
  private let receives: [ObjectIdentifier?]
  /// Finds the hooks that are not known beforehand.
  private let late: LateHooks?
  /// How long each of its hooks may take, where that is not as for all.
  let deadline: Duration?

  init(
    id: ObserverID, phase: LifecyclePhase, name: ObserverName, receives: [ObjectIdentifier?],
    late: LateHooks? = nil, deadline: Duration? = nil
  ) {
    self.id = id
    self.deadline = deadline ?? phase.deadline
    self.phase = phase
    self.name = name
    self.receives = receives
    self.late = late
  }

  /// The place of the hook for notifications of `type`, which are of this kind; `nil`: they are a user's own.
  func hook(for type: ObjectIdentifier, _ kind: NotificationKind?) -> Int? {
    for index in receives.indices where receives[index] == type { return index }
    return kind.flatMap { late?.place(of: $0) }
  }

  /// The place of the hook for all notifications.
  var wildcard: Int? {
    for index in receives.indices where receives[index] == nil { return index }
    return late?.place(of: nil)
  }

  /// How many calls a step makes.
  func hookCount(for step: LifecycleStep) -> Int {
    guard let type = step.type.map({ ObjectIdentifier($0) }) else { return 0 }
    let own = hook(for: type, step.kind) == nil ? 0 : 1
    return own + (wildcard == nil ? 0 : 1)
  }
}

/// The subscribers by the slot of their id.
struct Subscribers: Sendable {
  private var slots: [Subscriber?] = []

  subscript(id: ObserverID) -> Subscriber? {
    guard id.slot < slots.count, let subscriber = slots[id.slot], subscriber.id == id else {
      return nil
    }
    return subscriber
  }

  mutating func insert(_ subscriber: Subscriber) {
    while slots.count <= subscriber.id.slot { slots.append(nil) }
    slots[subscriber.id.slot] = subscriber
  }

  mutating func remove(_ id: ObserverID) -> Subscriber? {
    guard let subscriber = self[id] else { return nil }
    slots[id.slot] = nil
    return subscriber
  }

  mutating func removeAll() { slots = [] }

  var all: [Subscriber] { slots.compactMap { $0 } }
}
