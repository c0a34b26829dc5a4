// SPDX-License-Identifier: Apache-2.0
/// The work items that wait for a thread, each kind in order of arrival.
struct HookQueue {
  /// Beginnings of hooks, serial executors, callers and the package's own work, which get a thread at once, up to the bound.
  private var urgent = Deque<HookExecutor.WorkItem>()
  /// The other items, such as child tasks of hooks, which may have to wait for a thread.
  private var others = Deque<HookExecutor.WorkItem>()
  /// How many urgent items `popInTurn` has returned while others waited.
  private var urgentTurns = 0

  var isEmpty: Bool { urgent.isEmpty && others.isEmpty }
  var count: Int { urgent.count + others.count }
  var hasUrgent: Bool { !urgent.isEmpty }

  mutating func append(_ item: HookExecutor.WorkItem) {
    if item.isUrgent { urgent.append(item) } else { others.append(item) }
  }

  /// Returns the next item if it is a hook, and no other kind has to wait for it.
  mutating func popHook() -> (any HookExecutor.Call)? {
    guard others.isEmpty, case .hook(let call) = urgent.first else { return nil }
    _ = urgent.popFirst()
    return call
  }

  /// Returns an urgent item, or another one if there is none.
  mutating func popFirst() -> HookExecutor.WorkItem? { urgent.popFirst() ?? others.popFirst() }

  /// Returns an item for a thread that goes on: of urgent ones three, then one of the others. Two serial executors that are
  /// never idle together have always an urgent item, and a hook that has suspended must go on beside them.
  mutating func popInTurn(withOthers: Bool = true) -> HookExecutor.WorkItem? {
    if !withOthers { return urgent.popFirst() }
    let isOthersTurn = urgentTurns == 3
    urgentTurns = others.isEmpty || isOthersTurn ? 0 : urgentTurns + 1
    return isOthersTurn ? others.popFirst() ?? urgent.popFirst() : popFirst()
  }
}
