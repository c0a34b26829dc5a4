/// The items that wait for a thread: the urgent ones first, each kind in the order in which it came.
struct HookQueue {
  /// Hooks, serial executors, callers and our own work, which always get a thread.
  private var urgent = Deque<HookExecutor.Item>()
  /// Jobs that hooks bring with them, which may have to wait for one.
  private var bounded = Deque<HookExecutor.Item>()

  var isEmpty: Bool { urgent.isEmpty && bounded.isEmpty }
  var count: Int { urgent.count + bounded.count }
  var hasUrgent: Bool { !urgent.isEmpty }

  mutating func append(_ item: HookExecutor.Item) {
    if item.isBounded { bounded.append(item) } else { urgent.append(item) }
  }

  /// Puts an item back that could not be run.
  mutating func prepend(_ item: HookExecutor.Item) {
    if item.isBounded { bounded.prepend(item) } else { urgent.prepend(item) }
  }

  mutating func popFirst() -> HookExecutor.Item? { urgent.popFirst() ?? bounded.popFirst() }
}
