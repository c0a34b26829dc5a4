// SPDX-License-Identifier: Apache-2.0
/// One registration of an observer or a closure: what the machine reads of it, the object and its hooks.
///
/// `@unchecked`, as its superclass is: all properties are constants of sendable types, and the runtime guards the weak
/// reference.
final class ObserverEntry: MachineObserver, @unchecked Sendable {
  /// The user's options for an observer.
  struct Options: Sendable {
    /// `nil` for its type, or its place in the source.
    var name: String?
    var phase = LifecyclePhase.standard
    /// How long each of its hooks may take; `nil` for the phase's timeout, else the configuration's.
    var timeout: Duration?

    func name(orElse other: ObserverName) -> ObserverName { name.map { .given($0) } ?? other }
  }

  /// The hooks, by index.
  let hooks: [Hook]
  /// The observer's type; `nil` for a closure.
  let type: (any Any.Type)?
  /// The object that `removeObserver` names, by address; compared only while `target` is alive or the
  /// caller holds the object.
  let ownerID: ObjectIdentifier?
  /// Whether this is an observer with hooks (which is added once) or an owner's closure (any number).
  let isObserver: Bool
  /// The observer or owner.
  weak let target: (any AnyObject & Sendable)?
  /// Keeps the target alive as long as its entry is: an owned observer, or what stands for the owner of a closure
  /// without one.
  private let owned: (any AnyObject & Sendable)?

  /// - Parameter number: Which of its type it is, where it is owned and the options have no name.
  init(
    id: ObserverID, observer: some LifecycleObserver, isOwned: Bool, number: Int,
    hooks: TypeHooks, _ options: Options
  ) {
    let type = Swift.type(of: observer)
    self.hooks = hooks.hooks
    self.type = type
    ownerID = ObjectIdentifier(observer)
    isObserver = true
    target = observer
    owned = isOwned ? observer : nil
    super.init(
      id: id, phase: options.phase,
      name: options.name(orElse: .type(type, number: isOwned ? number : 1)),
      receives: hooks.receives, timeout: options.timeout)
  }

  /// The type that this one is named after, and its number.
  var numberedType: (ObjectIdentifier, number: Int)? {
    guard isObserver, owned != nil, case .type(let type, let number) = name else { return nil }
    return (ObjectIdentifier(type), number)
  }

  /// - Parameter name: Where the options have none.
  init(
    id: ObserverID, closures: [Hook], owner: (any AnyObject & Sendable)?, _ options: Options,
    name: ObserverName
  ) {
    hooks = closures
    type = nil
    ownerID = owner.map { ObjectIdentifier($0) }
    isObserver = false
    owned = owner == nil ? Anchor() : nil
    target = owner ?? owned
    super.init(
      id: id, phase: options.phase, name: options.name(orElse: name),
      receives: closures.map(\.notification), timeout: options.timeout)
  }

  private final class Anchor: Sendable {}
}
