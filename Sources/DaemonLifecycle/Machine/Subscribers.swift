// SPDX-License-Identifier: Apache-2.0
/// One registration of an observer or a closure, as the machine reads it. The shell's is a subclass, which has the
/// object and its hooks.
///
/// `@unchecked`, since a class with subclasses can't be checked: here all properties are constants of sendable types, and
/// its only subclass in Sources, `ObserverEntry`, is checked.
class MachineObserver: @unchecked Sendable {
  let id: ObserverID
  let phase: LifecyclePhase
  let name: ObserverName
  /// The notification of each hook, by index; `nil` for all notifications. There is at most one hook for each.
  private let receives: [ObjectIdentifier?]
  /// The observer's type, by its index in `KnownHooks`, which has its hooks; `nil` where `receives` has them.
  let hookType: Int?
  /// How long each of its hooks may take; `nil` for the default.
  let deadline: Duration?
  /// Whether it is the rounds of a `foreground { … }`, which need what the hooks before theirs provide.
  let isRounds: Bool

  init(
    id: ObserverID, phase: LifecyclePhase, name: ObserverName, receives: [ObjectIdentifier?],
    hookType: Int? = nil, deadline: Duration? = nil, isRounds: Bool = false
  ) {
    self.id = id
    self.deadline = deadline ?? phase.deadline
    self.phase = phase
    self.name = name
    self.receives = receives
    self.hookType = hookType
    self.isRounds = isRounds
  }

  /// Whether its hook is called after another's on the way up.
  func follows(_ other: MachineObserver) -> Bool {
    other.phase == phase ? !phase.isConcurrent && other.id < id : other.phase < phase
  }

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

/// The only table of observers: one is in it from its addition until its removal, or the daemon's end. What leaves it is
/// an effect of the same input, so that its last reference is not dropped under the lock.
struct Subscribers: Sendable {
  /// By the slot of their id; `nil`: free.
  private var slots: [MachineObserver?] = []
  private var free: [Int] = []
  /// The slot that is checked next for a deallocated observer.
  private var cursor = 0

  var count: Int { slots.count - free.count }
  var all: [MachineObserver] { slots.compactMap { $0 } }

  subscript(id: ObserverID) -> MachineObserver? {
    guard id.slot < slots.count, let observer = slots[id.slot], observer.id == id else {
      return nil
    }
    return observer
  }

  /// An id for the next observer, which is to be inserted at once.
  func nextID(_ value: UInt64) -> ObserverID {
    ObserverID(value: value, slot: free.last ?? slots.endIndex)
  }

  /// Inserts an observer, whose id is the next one.
  mutating func insert(_ observer: MachineObserver) {
    if observer.id.slot == slots.endIndex { slots.append(nil) } else { free.removeLast() }
    slots[observer.id.slot] = observer
  }

  mutating func remove(_ id: ObserverID) -> MachineObserver? {
    guard let observer = self[id] else { return nil }
    slots[id.slot] = nil
    free.append(id.slot)
    return observer
  }

  mutating func removeAll() -> [MachineObserver] {
    defer { self = Subscribers() }
    return all
  }

  /// Returns the next observer to check for whether it was deallocated. Each addition checks two, so that those are
  /// never more than half.
  mutating func candidate() -> MachineObserver? {
    guard !slots.isEmpty else { return nil }
    cursor = cursor + 1 < slots.count ? cursor + 1 : 0
    return slots[cursor]
  }
}
