/// An observer or a closure, as the machine knows it: without a reference to it.
final class Subscriber: Sendable {
  let id: ObserverID
  let phase: LifecyclePhase
  let name: ObserverName
  /// What each of its hooks is for; `nil`: for all notifications. It has at most one for each.
  let receives: [ObjectIdentifier?]
  /// How long each of its hooks may take, where that is not as for all.
  let deadline: Duration?

  init(
    id: ObserverID, phase: LifecyclePhase, name: ObserverName, receives: [ObjectIdentifier?],
    deadline: Duration? = nil
  ) {
    self.id = id
    self.deadline = deadline ?? phase.deadline
    self.phase = phase
    self.name = name
    self.receives = receives
  }

  /// The hook for notifications of `type`, or, for `nil`, for all: its place among its hooks.
  func hook(for type: ObjectIdentifier?) -> Int? {
    for index in receives.indices where receives[index] == type { return index }
    return nil
  }

  /// How many calls a notification of `type` makes.
  func hookCount(for type: ObjectIdentifier) -> Int { receives.count { $0 == type || $0 == nil } }
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
