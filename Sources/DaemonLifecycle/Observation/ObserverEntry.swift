import Synchronization

/// One registration of an observer: immutable, but for a flag; what changes about it is kept by the core.
final class ObserverEntry: Sendable {
  let id: ObserverID
  let phase: LifecyclePhase
  let hooks: [Hook]
  /// What each of the hooks is for: beside them, so that looking for one touches no other.
  private let kinds: [ObjectIdentifier?]
  let name: Name
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

  enum Name: Sendable {
    case type(any Any.Type)
    case closure(file: StaticString, line: UInt)
    case foreground(file: StaticString, line: UInt)
    case body
    /// From a report that was written down.
    case recorded(Recorded)
    /// Several that have one name, in a report where one entry stands for all of them.
    indirect case several(Name, Int)

    /// One more of them.
    func adding(_ count: Int) -> Name {
      if case .several(let name, let others) = self { return .several(name, others + count) }
      return .several(self, 1 + count)
    }
  }

  /// A reference, since every entry of a report has a name, and few are of this kind.
  final class Recorded: Sendable {
    let observer: String
    let notification: String?
    init(_ observer: String, _ notification: String?) {
      (self.observer, self.notification) = (observer, notification)
    }
  }

  init(id: ObserverID, observer: some LifecycleObserver, phase: LifecyclePhase, name: Name?) {
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
    id: ObserverID, closure: Hook, owner: (any AnyObject & Sendable)?, phase: LifecyclePhase,
    name: Name
  ) {
    self.id = id
    self.phase = phase
    hooks = [closure]
    kinds = [closure.notification]
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
    id: ObserverID(value: 0), closure: .none,
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

extension ObserverEntry.Name: CustomStringConvertible {
  /// Rendered when a report is read, not when it is made: naming a type takes half a microsecond.
  var description: String {
    switch self {
    case .type(let type): String(describing: type)
    case .closure(let file, let line): "closure at \(file):\(line)"
    case .foreground(let file, let line): "foreground at \(file):\(line)"
    case .body: "body"
    case .recorded(let recorded): recorded.observer
    case .several(let name, let count): "\(name) (×\(count))"
    }
  }
}

extension ObserverEntry.Name: Hashable {
  /// What makes two names the same: without rendering either.
  private var identity: (kind: Int, object: UInt, line: UInt) {
    switch self {
    case .type(let type): (0, UInt(bitPattern: ObjectIdentifier(type)), 0)
    case .closure(let file, let line): (1, UInt(bitPattern: file.utf8Start), line)
    case .foreground(let file, let line): (2, UInt(bitPattern: file.utf8Start), line)
    case .body: (3, 0, 0)
    case .recorded(let recorded): (4, UInt(bitPattern: ObjectIdentifier(recorded)), 0)
    case .several(let name, _): name.identity
    }
  }

  static func == (a: Self, b: Self) -> Bool { a.identity == b.identity }
  func hash(into hasher: inout Hasher) { hasher.combine(identity.object ^ identity.line) }
}
