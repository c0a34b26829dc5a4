// SPDX-License-Identifier: Apache-2.0
/// The hooks of the observers' types, by the types' indexes, each searched for once.
struct HookTable: Sendable {
  private struct Row: Sendable {
    let type: any LifecycleObserver.Type
    var searched: NotificationKinds = []
    /// By kind; `nil` where there is none, or none was searched for.
    var hooks: [Hook?] = Array(repeating: nil, count: NotificationKind.allCases.count)
  }
  /// Few, and of a type that is there already: a dictionary's type takes longer to make than they to search.
  private var rows: [Row] = []

  /// The index of a type, which never changes.
  mutating func index(of type: any LifecycleObserver.Type) -> Int {
    if let index = rows.lastIndex(where: { $0.type == type }) { return index }
    rows.append(Row(type: type))
    return rows.count - 1
  }

  /// - Precondition: The hook was found.
  subscript(type: Int, kind: Int) -> Hook { rows[type].hooks[kind]! }

  /// The searches that are missing for these kinds.
  func searches(for kinds: NotificationKinds) -> [HookSearch] {
    rows.indices.compactMap { index in
      let row = rows[index]
      let wanted = kinds.subtracting(row.searched)
      if wanted.isEmpty { return nil }
      return HookSearch(
        index: index, type: row.type, wanted: wanted, searched: row.searched,
        hasHook: row.hooks.contains { $0 != nil })
    }
  }

  /// Keeps what was found. A hook that another search has found before stays the one.
  mutating func insert(_ searches: [HookSearch]) {
    for search in searches {
      rows[search.index].searched.formUnion(search.searched)
      for (kind, hook) in search.hooks where rows[search.index].hooks[kind.rawValue] == nil {
        rows[search.index].hooks[kind.rawValue] = hook
      }
    }
  }
}

/// A search for hooks of one type, which is done outside of the lock.
struct HookSearch: Sendable {
  let index: Int
  private let type: any LifecycleObserver.Type
  private let wanted: NotificationKinds
  private(set) var searched: NotificationKinds
  private var hasHook: Bool
  private(set) var hooks: [(kind: NotificationKind, hook: Hook)] = []

  init(
    index: Int, type: any LifecycleObserver.Type, wanted: NotificationKinds,
    searched: NotificationKinds, hasHook: Bool
  ) {
    self.index = index
    self.type = type
    self.wanted = wanted
    self.searched = searched
    self.hasHook = hasHook
  }

  /// Searches for what is wanted, and for all as long as the type has no hook, which is an error.
  mutating func run() {
    let kinds = NotificationKind.allCases
    for kind in kinds where wanted.contains(kind) { search(for: kind) }
    for kind in kinds where !hasHook && !searched.contains(kind) { search(for: kind) }
    if !hasHook { hooks.append((.didFinishLaunching, .missing(type))) }
  }

  private mutating func search(for kind: NotificationKind) {
    searched.insert(NotificationKinds(kind))
    guard let hook = Hook.search(type, for: kind) else { return }
    hooks.append((kind, hook))
    hasHook = true
  }

  /// What the machine learns of it.
  var result: (type: Int, entry: KnownHooks.Entry) {
    let found = NotificationKinds(hooks.map { NotificationKinds($0.kind) })
    return (index, KnownHooks.Entry(searched: searched, found: found))
  }
}
