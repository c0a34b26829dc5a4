import Synchronization

/// Binds whatever runs in a hook, its child tasks included, to the call that it is part of.
///
/// A task-local value, since nothing else follows a task into its children. Setting one takes longer than a short
/// hook, so a driver sets one for many hooks, and moves it on to the next while nobody else can see it.
final class HookScope: Sendable {
  @TaskLocal static var current: HookScope?

  /// The call that the current task is part of; it may have ended since.
  static var currentCall: HookCall? {
    current.map { HookCall(run: $0.run, index: $0.index.load(ordering: .relaxed)) }
  }

  private let run: HookRun
  private let index: Atomic<Int>
  /// The references to this object when only its driver knew it.
  private let references = Atomic<UInt>(0)

  init(_ run: HookRun, at index: Int) {
    self.run = run
    self.index = Atomic(index)
  }

  /// Called in the scope before its first hook.
  func remember() { references.store(Self.count(of: self), ordering: .relaxed) }

  /// Moves on to the next call. False when a task that the last hook has started, and that has not ended, has
  /// inherited the scope: it stays what it was, and the next call needs a scope of its own.
  ///
  /// Such a task holds a reference; structured children have ended with their hook. Nobody can get a reference
  /// from anywhere but a task that holds one, so a count that is no higher than at first means that there is
  /// no such task.
  func move(to index: Int) -> Bool {
    guard Self.count(of: self) <= references.load(ordering: .relaxed) else { return false }
    self.index.store(index, ordering: .relaxed)
    return true
  }

  /// One place for both counts, so that what the compiler adds is the same in both.
  @inline(never) private static func count(of scope: HookScope) -> UInt { _getRetainCount(scope) }
}

/// One call of one hook: a place in a run.
struct HookCall: Sendable {
  let run: HookRun
  let index: Int

  var core: LifecycleCore { run.core }
  var context: LifecycleContext { LifecycleContext(run: run, index: index) }
  /// Whether the hook has neither ended nor been given up.
  var isCurrent: Bool { run.isCurrent(index) }
}
