// SPDX-License-Identifier: Apache-2.0
/// The work items that wait for a thread: the urgent ones in order of arrival, and of the others those of each source.
struct HookQueue {
  /// Where items come from that are not urgent: a task that calls hooks, with its child tasks. They may hold threads for ever.
  ///
  /// `@unchecked`: an executor's lock guards what is here.
  class Source: @unchecked Sendable {
    /// How many threads run its items.
    fileprivate(set) var threads = 0
    fileprivate var waiting = Deque<HookExecutor.WorkItem>()
  }

  /// Beginnings of hooks, serial executors, callers and the package's own work, which get a thread at once, up to the bound.
  private var urgent = Deque<HookExecutor.WorkItem>()
  /// The sources of the items that may have to wait for a thread, each once, in turns.
  private var sources = Deque<Source>()
  /// The number of threads that run such items.
  private var threads = 0
  /// How many urgent items `popInTurn` has returned while others waited.
  private var urgentTurns = 0

  var isEmpty: Bool { urgent.isEmpty && sources.isEmpty }
  /// Of items that wait.
  private(set) var count = 0
  var hasUrgent: Bool { !urgent.isEmpty }

  mutating func append(_ item: HookExecutor.WorkItem) {
    count += 1
    guard let source = item.source else { return urgent.append(item) }
    if source.waiting.isEmpty { sources.append(source) }
    source.waiting.append(item)
  }

  /// Returns the next item if it is a hook, and no other kind has to wait for it.
  mutating func popHook() -> (any HookExecutor.Call)? {
    guard sources.isEmpty, case .hook(let call) = urgent.first else { return nil }
    _ = popUrgent()
    return call
  }

  /// Returns an item for a thread that goes on: of urgent ones three, then one of the others. Two serial executors that are
  /// never idle together have always an urgent item, and a hook that has suspended must go on beside them.
  mutating func popInTurn(of bound: Int = .max) -> HookExecutor.WorkItem? {
    let isOthersTurn = urgentTurns == 3
    urgentTurns = sources.isEmpty || isOthersTurn ? 0 : urgentTurns + 1
    if isOthersTurn, let other = popOther(of: bound) { return other }
    return popFirst(of: bound)
  }

  /// Returns an urgent item, or another one if there is none.
  mutating func popFirst(of bound: Int = .max) -> HookExecutor.WorkItem? {
    popUrgent() ?? popOther(of: bound)
  }

  private mutating func popUrgent() -> HookExecutor.WorkItem? {
    if !urgent.isEmpty { count -= 1 }
    return urgent.popFirst()
  }

  // MARK: Items that are not urgent

  /// Whether a source may have a thread more, of so many for all: no more than it leaves to the others. So each has some,
  /// whatever the others hold.
  private func mayTake(_ source: Source, of bound: Int) -> Bool {
    source.threads < bound - threads
  }

  func hasOther(of bound: Int) -> Bool { sources.contains { mayTake($0, of: bound) } }

  private mutating func popOther(of bound: Int) -> HookExecutor.WorkItem? {
    for _ in 0..<sources.count {
      guard let source = sources.popFirst() else { break }
      let item = mayTake(source, of: bound) ? source.waiting.popFirst() : nil
      if !source.waiting.isEmpty { sources.append(source) }
      guard let item else { continue }
      count -= 1
      return item
    }
    return nil
  }

  /// A thread runs an item of a source, or does so no longer.
  mutating func count(_ change: Int, of source: Source?) {
    guard let source else { return }
    source.threads += change
    threads += change
  }
}
