/// One registration of an observer: immutable; what changes about it is kept by the core under its lock.
final class ObserverEntry: Sendable {
  let id: ObserverID
  let phase: LifecyclePhase
  let hooks: [Hook]
  let name: Name
  /// The object that `removeObserver` names, by address; compared only while `target` is alive or the
  /// caller holds the object.
  let ownerID: ObjectIdentifier?
  /// Whether this is an observer with hooks (which is added once) or an owner's closure (any number).
  let isObserver: Bool
  /// The observer or owner.
  weak let target: (any AnyObject & Sendable)?
  /// Keeps the target of a closure without an owner alive as long as its entry is.
  private let anchor: Anchor?

  enum Name: Sendable {
    case type(any Any.Type)
    case closure(file: StaticString, line: UInt)
    case foreground(file: StaticString, line: UInt)
    case body
  }

  init(id: ObserverID, observer: some LifecycleObserver, phase: LifecyclePhase, name: Name?) {
    self.id = id
    self.phase = phase
    hooks = Hook.hooks(of: observer)
    self.name = name ?? .type(type(of: observer))
    ownerID = ObjectIdentifier(observer)
    isObserver = true
    target = observer
    anchor = nil
  }

  init(
    id: ObserverID, closure: Hook, owner: (any AnyObject & Sendable)?, phase: LifecyclePhase,
    name: Name
  ) {
    self.id = id
    self.phase = phase
    hooks = [closure]
    self.name = name
    ownerID = owner.map { ObjectIdentifier($0) }
    isObserver = false
    let anchor = owner == nil ? Anchor() : nil
    self.anchor = anchor
    target = owner ?? anchor
  }

  /// Stands for the body of `run` in reports; nobody registers or calls it.
  static let body = ObserverEntry(
    id: ObserverID(value: 0), closure: Hook(notification: nil, isMethod: false) { _, _, _ in },
    owner: nil, phase: .standard, name: .body)

  /// The hooks for notifications of `type`, then those for all.
  func hooks(for type: ObjectIdentifier) -> [Hook] { hooks.filter { $0.notification == type } }
  var wildcards: [Hook] { hooks.filter { $0.notification == nil } }
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
    }
  }
}
