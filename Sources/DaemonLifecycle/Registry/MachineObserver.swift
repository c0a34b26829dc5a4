// SPDX-License-Identifier: Apache-2.0
/// One registration, as the machine reads it: a work, or an observer or a closure, whose subclass in the shell has the
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
  /// How long each of its hooks may take; `nil` for the default.
  let timeout: Duration?
  /// What its author has said of a work, which has a body in place of hooks; `nil` for an observer.
  let work: WorkOptions?
  /// Stored, since each hook asks for it.
  let isWork: Bool

  init(
    id: ObserverID, phase: LifecyclePhase, name: ObserverName, receives: [ObjectIdentifier?],
    timeout: Duration? = nil, work: WorkOptions? = nil
  ) {
    self.id = id
    self.timeout = timeout ?? phase.timeout
    self.phase = phase
    self.name = name
    self.receives = receives
    self.work = work
    isWork = work != nil
  }

  /// Returns the index of the hook for a step, by which the shell finds it. A work has one, its body.
  ///
  /// - Parameter notification: The type of the step's notification, which is asked for once.
  func hook(for notification: ObjectIdentifier?, _ step: LifecycleStep) -> Int? {
    if let work { return work.concerns(step) ? 0 : nil }
    guard let notification else { return nil }
    // A health check is for observers with that hook only.
    return receives.firstIndex { $0 == notification || $0 == nil && !step.isHealthCheck }
  }

  /// How long it may take for a step; `nil` for the default. Work has another limit for its start than for its end.
  @inline(__always) func limit(of step: LifecycleStep) -> Duration? {
    isWork && step.beginsWork ? work?.readyWithin : timeout
  }

  /// Whether it has a hook for a step.
  func receives(_ step: LifecycleStep) -> Bool {
    hook(for: step.type.map { ObjectIdentifier($0) }, step) != nil
  }

  /// Whether it is before another in the order, the members of a concurrent phase among themselves too.
  func precedes(_ other: MachineObserver) -> Bool {
    phase == other.phase ? id < other.id : phase < other.phase
  }

  /// Whether its hook is called after another's on the way up.
  func follows(_ other: MachineObserver) -> Bool {
    other.phase == phase ? !phase.isConcurrent && other.id < id : other.phase < phase
  }
}
