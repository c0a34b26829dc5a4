// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// Whether Swift's pool, whose threads are Dispatch's, can be given work without waiting.
///
/// Where Dispatch needs a thread and there is none to be had, it does not fail: whoever enqueues sleeps, a second at a
/// time, until there is one. So the package asks first, and does without its questions to the pool and the main actor.
enum DispatchThreads {
  /// Dispatch keeps a thread that has nothing to do for five seconds.
  private static let keeps = Duration.seconds(4)
  /// When work of ours was last done by one of its threads, or a thread could be had; in nanoseconds.
  private static let lastHad = Atomic<Int64>(.min)

  /// As far as anybody can know: another may take the last thread in this moment. Makes a thread at most once in a
  /// while.
  static var canBeHad: Bool {
    let last = MonotonicTime(nanoseconds: lastHad.load(ordering: .relaxed))
    if last.duration(to: .now()) < keeps { return true }
    guard Thread.spawn(named: "lifecycle-try", {}) else { return false }
    noteHad()
    return true
  }

  /// One of its threads runs work of ours.
  static func noteHad() { lastHad.store(MonotonicTime.now().nanoseconds, ordering: .relaxed) }
}
