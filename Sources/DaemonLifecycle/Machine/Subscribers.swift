// SPDX-License-Identifier: Apache-2.0
/// An observer or a closure, as the machine knows it: without a reference to it.
final class Subscriber: Sendable {
  let id: ObserverID
  let phase: LifecyclePhase
  let name: ObserverName
  /// The notification of each hook, by index; `nil` for all notifications. There is at most one hook for each.
  private let receives: [ObjectIdentifier?]
  /// The hooks that are not known in advance.
  private let late: LateHooks?
  /// How long each of its hooks may take; `nil` for the default.
  let deadline: Duration?
  /// Whether it is the rounds of a `foreground { … }`, which need what the hooks before theirs provide.
  let isRounds: Bool

  init(
    id: ObserverID, phase: LifecyclePhase, name: ObserverName, receives: [ObjectIdentifier?],
    late: LateHooks? = nil, deadline: Duration? = nil, isRounds: Bool = false
  ) {
    self.id = id
    self.deadline = deadline ?? phase.deadline
    self.phase = phase
    self.name = name
    self.receives = receives
    self.late = late
    self.isRounds = isRounds
  }

  /// Whether its hook is called after another's on the way up.
  func follows(_ other: Subscriber) -> Bool {
    other.phase == phase ? !phase.isConcurrent && other.id < id : other.phase < phase
  }

  /// Returns the index of the hook for notifications of a type; `kind` is `nil` for custom ones.
  func hook(for type: ObjectIdentifier, _ kind: NotificationKind?) -> Int? {
    for index in receives.indices where receives[index] == type { return index }
    return kind.flatMap { late?.place(of: $0) }
  }

  /// The index of the hook for all notifications.
  var wildcard: Int? {
    for index in receives.indices where receives[index] == nil { return index }
    return late?.place(of: nil)
  }

  /// Returns the number of calls for a step.
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
