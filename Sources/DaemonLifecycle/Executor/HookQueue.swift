// SPDX-License-Identifier: Apache-2.0
/// The work items that wait for a thread, each kind in order of arrival.
struct HookQueue {
  /// Where items come from that are not urgent: a task that calls hooks, with its child tasks. They may hold threads for ever.
  ///
  /// `@unchecked`: an executor's lock guards what is here.
  class Source: @unchecked Sendable {
    /// How many threads run its items.
    fileprivate var threads = 0
  }

  /// Beginnings of hooks, serial executors, callers and the package's own work, which get a thread at once, up to the bound.
  private var urgent = Deque<HookExecutor.WorkItem>()
  /// The other items, which have a source, and may have to wait for a thread.
  private var others = Deque<HookExecutor.WorkItem>()
  /// The number of threads that run such items.
  private var threads = 0
  /// How many urgent items `popInTurn` has returned while others waited.
  private var urgentTurns = 0

  var isEmpty: Bool { urgent.isEmpty && others.isEmpty }
  var count: Int { urgent.count + others.count }
  var hasUrgent: Bool { !urgent.isEmpty }

  mutating func append(_ item: HookExecutor.WorkItem) {
    if item.source == nil { urgent.append(item) } else { others.append(item) }
  }

  /// Returns the next item if it is a hook, and no other kind has to wait for it.
  mutating func popHook() -> (any HookExecutor.Call)? {
    guard others.isEmpty, case .hook(let call) = urgent.first else { return nil }
    _ = urgent.popFirst()
    return call
  }

  /// Returns an urgent item, or another one if there is none.
  mutating func popFirst(of bound: Int = .max) -> HookExecutor.WorkItem? {
    urgent.popFirst() ?? popOther(of: bound)
  }

  /// Returns an item for a thread that goes on: of urgent ones three, then one of the others. Two serial executors that are
  /// never idle together have always an urgent item, and a hook that has suspended must go on beside them.
  mutating func popInTurn(of bound: Int = .max) -> HookExecutor.WorkItem? {
    let isOthersTurn = urgentTurns == 3
    urgentTurns = others.isEmpty || isOthersTurn ? 0 : urgentTurns + 1
    return (isOthersTurn ? popOther(of: bound) : nil) ?? popFirst(of: bound)
  }

  // MARK: Items that are not urgent

  /// Whether an item's source may have a thread more where so many are left: no more than it leaves to the others. So each
  /// has some, whatever the others hold.
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

  /// A thread runs an item of a source, or does so no longer.
  mutating func count(_ change: Int, of source: Source?) {
    guard let source else { return }
    source.threads += change
    threads += change
  }
}
