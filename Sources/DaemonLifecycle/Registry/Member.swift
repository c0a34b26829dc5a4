// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// One registration: an observer or a closure with its hooks, or a work, which has a body in their place.
///
/// The machine reads what it is, and keeps the object and the hooks for the shell, which calls them.
final class Member: Sendable {
  /// The user's options for an observer.
  struct Options: Sendable {
    /// `nil` for its type, or its place in the source.
    var name: String?
    var phase = LifecyclePhase.standard
    /// How long each of its hooks may take; `nil` for the phase's timeout, else the configuration's.
    var timeout: Duration?
  }

  let id: ObserverID
  let phase: LifecyclePhase
  let name: ObserverName
  /// The notification of each hook, by index; `nil` for all notifications. There is at most one hook for each.
  let receives: [ObjectIdentifier?]
  /// How long each of its hooks may take; `nil` for the default.
  let timeout: Duration?
  /// The options of a work; `nil` for an observer.
  let work: WorkOptions?
  /// Stored, since each hook asks for it.
  let isWork: Bool
  /// The hooks, by index.
  let hooks: [Hook]
  /// The observer's type; `nil` for a closure and a work.
  let type: (any Any.Type)?
  /// The object that `removeObserver` names, by address; compared only while `target` is alive or the caller holds the
  /// object.
  let ownerID: ObjectIdentifier?
  /// The observer or owner; `nil` for a work.
  weak let target: (any AnyObject & Sendable)?
  /// Keeps the target alive as long as this is: an owned observer, or what stands for the owner of a closure without one.
  private let owned: (any AnyObject & Sendable)?

  init(
    id: ObserverID, phase: LifecyclePhase, name: ObserverName, receives: [ObjectIdentifier?] = [],
    timeout: Duration? = nil, work: WorkOptions? = nil, hooks: [Hook] = [],
    type: (any Any.Type)? = nil, ownerID: ObjectIdentifier? = nil,
    target: (any AnyObject & Sendable)? = nil, isOwned: Bool = false
  ) {
    self.id = id
    self.timeout = (timeout ?? phase.timeout)?.bounded
    self.phase = phase
    self.name = name
    self.receives = receives
    self.work = work
    isWork = work != nil
    self.hooks = hooks
    self.type = type
    self.ownerID = ownerID
    self.target = target
    owned = isOwned ? target : nil
  }

  /// - Parameter number: Which of its type it is, where it is owned and the options have no name.
  convenience init(
    id: ObserverID, observer: some LifecycleObserver, isOwned: Bool, number: Int,
    hooks: TypeHooks, _ options: Options
  ) {
    let type = Swift.type(of: observer)
    self.init(
      id: id, phase: options.phase,
      name: .given(options.name, orElse: .type(type, number: isOwned ? number : 1)),
      receives: hooks.receives, timeout: options.timeout, hooks: hooks.hooks, type: type,
      ownerID: ObjectIdentifier(observer), target: observer, isOwned: isOwned)
  }

  /// - Parameter name: Where the options have none.
  convenience init(
    id: ObserverID, closures: [Hook], owner: (any AnyObject & Sendable)?, _ options: Options,
    name: ObserverName
  ) {
    self.init(
      id: id, phase: options.phase, name: .given(options.name, orElse: name),
      receives: closures.map(\.notification), timeout: options.timeout, hooks: closures,
      ownerID: owner.map { ObjectIdentifier($0) }, target: owner ?? Anchor(), isOwned: owner == nil)
  }

  private final class Anchor: Sendable {}

  deinit { owned.map { ReleasePool.release($0) } }

  /// Whether it is an observer with hooks, which is added once, rather than an owner's closure, of which there may be any
  /// number.
  var isObserver: Bool { type != nil }

  /// Whether its object is gone.
  var isGone: Bool { !isWork && target == nil }

  /// The type that this one is named after, and its number.
  var numberedType: (ObjectIdentifier, number: Int)? {
    guard isObserver, owned != nil, case .type(let type, let number) = name else { return nil }
    return (ObjectIdentifier(type), number)
  }

  // MARK: For the machine

  /// Returns the index of the hook for a step. A work has one, its body.
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
  func precedes(_ other: Member) -> Bool {
    phase.isSame(as: other.phase) ? id < other.id : phase < other.phase
  }

  /// Whether its hook is called after another's on the way up.
  func follows(_ other: Member) -> Bool {
    other.phase.isSame(as: phase) ? !phase.isConcurrent && other.id < id : other.phase < phase
  }
}
