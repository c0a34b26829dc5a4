// SPDX-License-Identifier: Apache-2.0
/// The work items that wait for a thread: the urgent ones first, each kind in order of arrival.
struct HookQueue {
  /// Beginnings of hooks, serial executors, callers and the package's own work, which always get a thread.
  private var urgent = Deque<HookExecutor.WorkItem>()
  /// The other items, such as child tasks of hooks, which may have to wait for a thread.
  private var others = Deque<HookExecutor.WorkItem>()

  var isEmpty: Bool { urgent.isEmpty && others.isEmpty }
  var count: Int { urgent.count + others.count }
  var hasUrgent: Bool { !urgent.isEmpty }

  mutating func append(_ item: HookExecutor.WorkItem) {
    if item.isUrgent { urgent.append(item) } else { others.append(item) }
  }

  /// Puts an item back that could not be run.
  mutating func prepend(_ item: HookExecutor.WorkItem) {
    if item.isUrgent { urgent.prepend(item) } else { others.prepend(item) }
  }

  mutating func popFirst() -> HookExecutor.WorkItem? { urgent.popFirst() ?? others.popFirst() }
}
