// SPDX-License-Identifier: Apache-2.0
/// The work items that wait for a thread, each kind in order of arrival.
struct HookQueue {
  /// The source of items that are not urgent: a task that calls hooks, with its child tasks. These may hold threads for ever.
  ///
  /// `@unchecked`: an executor's lock guards `threads`.
  class Source: @unchecked Sendable {
    /// How many threads run its items.
    fileprivate var threads = 0
  }

  /// Beginnings of hooks, serial executors, callers and the package's own work, which get a thread at once, up to the bound.
  private var urgent = Deque<HookExecutor.WorkItem>()
  /// The other items, which have a source, and may have to wait for a thread.
  private var others = Deque<HookExecutor.WorkItem>()
  /// The number of threads that run items with a source.
  private var threads = 0
  /// How many urgent items `popInTurn` has returned while others waited.
  private var urgentTurns = 0

  var isEmpty: Bool { urgent.isEmpty && others.isEmpty }
  var count: Int { urgent.count + others.count }
  var hasUrgent: Bool { !urgent.isEmpty }

  mutating func append(_ item: HookExecutor.WorkItem) {
    if item.source == nil { urgent.append(item) } else { others.append(item) }
  }

  /// Returns the next item if it is a hook, and no item with a source waits.
  mutating func popHook() -> (any HookExecutor.Call)? {
    guard others.isEmpty, case .hook(let call) = urgent.first else { return nil }
    _ = urgent.popFirst()
    return call
  }

  /// Returns an urgent item, or another one if there is none.
  mutating func popFirst(of bound: Int = .max) -> HookExecutor.WorkItem? {
    urgent.popFirst() ?? popOther(of: bound)
  }

  /// Returns an item for a thread's next turn: three urgent items, then one of the others. Two busy serial executors
  /// always have an urgent item ready, and a hook that has suspended must still continue.
  mutating func popInTurn(of bound: Int = .max) -> HookExecutor.WorkItem? {
    let isOthersTurn = urgentTurns == 3
    urgentTurns = others.isEmpty || isOthersTurn ? 0 : urgentTurns + 1
    return (isOthersTurn ? popOther(of: bound) : nil) ?? popFirst(of: bound)
  }

  // MARK: Items that are not urgent

  /// Whether an item's source may use one more of the threads left: only while it uses fewer than are left. So each
  /// source gets some, whatever the others hold.
  private static func mayRun(_ item: HookExecutor.WorkItem, _ left: Int) -> Bool {
    item.source.map { $0.threads < left } ?? true
  }

  func hasOther(of bound: Int) -> Bool { others.contains { Self.mayRun($0, bound - threads) } }

  private mutating func popOther(of bound: Int) -> HookExecutor.WorkItem? {
    let left = bound - threads
    // Nearly always the first.
    guard let first = others.popFirst() else { return nil }
    if Self.mayRun(first, left) { return first }
    defer { others.prepend(first) }
    return others.removeFirst { Self.mayRun($0, left) }
  }

  /// Counts a thread that begins (1) or ends (-1) an item of a source.
  mutating func count(_ change: Int, of source: Source?) {
    guard let source else { return }
    source.threads += change
    threads += change
  }
}
