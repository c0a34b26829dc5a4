// SPDX-License-Identifier: Apache-2.0
/// The hooks of the observers of one type, as far as they were searched for: what a search finds never changes.
struct TypeHooks: Sendable {
  let type: any LifecycleObserver.Type
  private(set) var searched: NotificationKinds = []
  /// A subset of `searched`: the kinds of `hooks`.
  private(set) var found: NotificationKinds = []
  /// By kind.
  private var hooks: [Hook?] = Array(repeating: nil, count: NotificationKind.allCases.count)

  init(_ type: any LifecycleObserver.Type, searched: [NotificationKind] = []) {
    self.type = type
    self.searched = NotificationKinds(searched.map { NotificationKinds($0) })
  }

  /// - Precondition: The kind was found.
  subscript(kind: Int) -> Hook { hooks[kind]! }

  /// Searches for the hooks of these kinds; a type without any hook is an error, for which it gets one.
  mutating func search(for wanted: NotificationKinds) {
    let kinds = NotificationKind.allCases
    for kind in kinds where wanted.contains(kind) { search(for: kind) }
    // The runtime keeps what it has found, so it is not found again for each kind.
    guard found.isEmpty, !kinds.contains(where: { $0.row.search(type) != nil }) else { return }
    searched = .all
    add(.missing(type), for: .didFinishLaunching)
  }

  private mutating func search(for kind: NotificationKind) {
    guard !searched.contains(kind) else { return }
    if let hook = Hook.search(type, for: kind) { add(hook, for: kind) }
    searched.insert(NotificationKinds(kind))
  }

  /// Adds a hook that was found.
  mutating func add(_ hook: Hook, for kind: NotificationKind) {
    searched.insert(NotificationKinds(kind))
    found.insert(NotificationKinds(kind))
    hooks[kind.rawValue] = hook
  }

  /// Takes in what another search has found.
  mutating func merge(_ other: TypeHooks) {
    searched.formUnion(other.searched)
    found.formUnion(other.found)
    for (kind, hook) in other.hooks.enumerated() where hooks[kind] == nil { hooks[kind] = hook }
  }
}

/// A set of kinds of notifications.
struct NotificationKinds: OptionSet, Sendable {
  let rawValue: UInt32

  init(rawValue: UInt32) { self.rawValue = rawValue }
  init(_ kind: NotificationKind?) { rawValue = kind.map { 1 << UInt32($0.rawValue) } ?? 0 }

  static let all = Self(rawValue: 1 << UInt32(NotificationKind.allCases.count) - 1)
  func contains(_ kind: NotificationKind) -> Bool { rawValue & 1 << UInt32(kind.rawValue) != 0 }
}
