// SPDX-License-Identifier: Apache-2.0
/// An observer or a closure, as the machine knows it: without a reference to it.
final class Subscriber: Sendable {
  let id: ObserverID
  let phase: LifecyclePhase
  let name: ObserverName
  /// The notification of each hook, by index; `nil` for all notifications. There is at most one hook for each.
  private let receives: [ObjectIdentifier?]
  /// The observer's type, by its index in `KnownHooks`, which has its hooks; `nil` where `receives` has them.
  let type: Int?
  /// How long each of its hooks may take; `nil` for the default.
  let deadline: Duration?
  /// Whether it is the rounds of a `foreground { … }`, which need what the hooks before theirs provide.
  let isRounds: Bool

  init(
    id: ObserverID, phase: LifecyclePhase, name: ObserverName, receives: [ObjectIdentifier?],
    type: Int? = nil, deadline: Duration? = nil, isRounds: Bool = false
  ) {
    self.id = id
    self.deadline = deadline ?? phase.deadline
    self.phase = phase
    self.name = name
    self.receives = receives
    self.type = type
    self.isRounds = isRounds
  }

  /// Whether its hook is called after another's on the way up.
  func follows(_ other: Subscriber) -> Bool {
    other.phase == phase ? !phase.isConcurrent && other.id < id : other.phase < phase
  }

  /// Returns the index of the hook for notifications of a type, by which the shell finds it; `kind` is `nil` for custom
  /// ones.
  func hook(
    for notification: ObjectIdentifier, _ kind: NotificationKind?, in known: KnownHooks
  ) -> Int? {
    if let type {
      guard let kind, known[type].found.contains(kind) else { return nil }
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
