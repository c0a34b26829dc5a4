import Synchronization

/// One registration of an observer: immutable, but for a flag; what changes about it is kept by the core.
final class ObserverEntry: Sendable {
  let id: ObserverID
  let phase: LifecyclePhase
  let hooks: [Hook]
  /// What each of the hooks is for: beside them, so that looking for one touches no other.
  private let kinds: [ObjectIdentifier?]
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
  /// Set by the core, under its lock, when it was removed or is busy: a driver must ask before it calls its hook.
  var needsCore: Bool {
    get { asks.load(ordering: .acquiring) }
    set { asks.store(newValue, ordering: .releasing) }
  }
  private let asks = Atomic<Bool>(false)
  /// Keeps the target of a closure without an owner alive as long as its entry is.
  private let anchor: Anchor?

  init(id: ObserverID, observer: some LifecycleObserver, phase: LifecyclePhase, name: ObserverName?)
  {
    self.id = id
    self.phase = phase
    hooks = Hook.hooks(of: observer)
    kinds = hooks.map(\.notification)
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
    kinds = hooks.map(\.notification)
    self.name = name
    ownerID = owner.map { ObjectIdentifier($0) }
    isObserver = false
    let anchor = owner == nil ? Anchor() : nil
    self.anchor = anchor
    target = owner ?? anchor
    asActor = nil
  }

  /// Stands for the body of `run` in reports; nobody registers or calls it.
  static let body = ObserverEntry(
    id: ObserverID(value: 0), closures: [.none],
    owner: nil, phase: .standard, name: .body)

  /// The hook for notifications of `type`, of which an observer has one at most; or, for `nil`, for all.
  func hook(for type: ObjectIdentifier?) -> Hook? {
    for index in kinds.indices where kinds[index] == type { return hooks[index] }
    return nil
  }
  /// How many calls a notification of `type` makes.
  func hookCount(for type: ObjectIdentifier) -> Int {
    hooks.count { $0.notification == type || $0.notification == nil }
  }

  private final class Anchor: Sendable {}
}
