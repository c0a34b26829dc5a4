/// One registration of an observer: immutable; what changes about it is kept by the machine.
final class ObserverEntry: Sendable {
  /// What the user says of an observer beside the observer itself.
  struct Options: Sendable {
    var phase = LifecyclePhase.standard
    /// `nil`: named after its type, or its place in the source.
    var name: ObserverName?
    /// How long each of its hooks may take; `nil`: as the phase or the configuration says.
    var deadline: Duration?
  }

  let id: ObserverID
  let options: Options
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
  /// Keeps the target alive as long as its entry is: an owned observer, or what stands for the owner of a closure
  /// without one.
  private let owned: (any AnyObject & Sendable)?

  init(id: ObserverID, observer: some LifecycleObserver, isOwned: Bool, _ options: Options) {
    self.id = id
    self.options = options
    hooks = Hook.hooks(of: observer)
    name = options.name ?? .type(type(of: observer))
    ownerID = ObjectIdentifier(observer)
    isObserver = true
    target = observer
    owned = isOwned ? observer : nil
    asActor = (observer as? any Actor).map { Self.actor($0) }
  }

  /// The cast is free: the target is the object whose type was opened here.
  private static func actor<A: Actor>(_: A) -> @Sendable (any AnyObject & Sendable) -> any Actor {
    { unsafeDowncast($0, to: A.self) }
  }

  /// - Parameter name: Where the options have none.
  init(
    id: ObserverID, closures: [Hook], owner: (any AnyObject & Sendable)?, _ options: Options,
    name: ObserverName
  ) {
    self.id = id
    self.options = options
    hooks = closures
    self.name = options.name ?? name
    ownerID = owner.map { ObjectIdentifier($0) }
    isObserver = false
    owned = owner == nil ? Anchor() : nil
    target = owner ?? owned
    asActor = nil
  }

  private final class Anchor: Sendable {}
}
