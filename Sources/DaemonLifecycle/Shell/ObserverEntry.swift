/// One registration of an observer: immutable; what changes about it is kept by the machine.
final class ObserverEntry: Sendable {
  let id: ObserverID
  let phase: LifecyclePhase
  let hooks: [Hook]
  let name: ObserverName
  /// The object that `removeObserver` names, by address; compared only while `target` is alive or the
  /// caller holds the object.
  let ownerID: ObjectIdentifier?
  /// Whether this is an observer with hooks (which is added once) or an owner's closure (any number).
  let isObserver: Bool
  /// The observer or owner.
  weak let target: (any AnyObject & Sendable)?
  /// The observer as the actor that it is, without looking for that each time.
  let asActor: (@Sendable (any AnyObject & Sendable) -> any Actor)?
  /// Keeps the target of a closure without an owner alive as long as its entry is.
  private let anchor: Anchor?

  init(id: ObserverID, observer: some LifecycleObserver, phase: LifecyclePhase, name: ObserverName?)
  {
    self.id = id
    self.phase = phase
    hooks = Hook.hooks(of: observer)
    self.name = name ?? .type(type(of: observer))
    ownerID = ObjectIdentifier(observer)
    isObserver = true
    target = observer
    anchor = nil
    asActor = (observer as? any Actor).map { Self.actor($0) }
  }

  /// The cast is free: the target is the object whose type was opened here.
  private static func actor<A: Actor>(_: A) -> @Sendable (any AnyObject & Sendable) -> any Actor {
    { unsafeDowncast($0, to: A.self) }
  }

  init(
    id: ObserverID, closures: [Hook], owner: (any AnyObject & Sendable)?, phase: LifecyclePhase,
    name: ObserverName
  ) {
    self.id = id
    self.phase = phase
    hooks = closures
    self.name = name
    ownerID = owner.map { ObjectIdentifier($0) }
    isObserver = false
    let anchor = owner == nil ? Anchor() : nil
    self.anchor = anchor
    target = owner ?? anchor
    asActor = nil
  }

  private final class Anchor: Sendable {}
}
