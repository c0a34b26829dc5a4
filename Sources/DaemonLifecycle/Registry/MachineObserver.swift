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
  let receives: [ObjectIdentifier?]
  /// The observer's type, by its index in `KnownHooks`, which has its hooks; `nil` where `receives` has them.
  let hookType: Int?
  /// How long each of its hooks may take; `nil` for the default.
  let timeout: Duration?
  /// Whether it is the rounds of a `foreground { … }`, which need what the hooks before theirs provide.
  let isRounds: Bool

  init(
    id: ObserverID, phase: LifecyclePhase, name: ObserverName, receives: [ObjectIdentifier?],
    hookType: Int? = nil, timeout: Duration? = nil, isRounds: Bool = false
  ) {
    self.id = id
    self.timeout = timeout ?? phase.timeout
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
}
