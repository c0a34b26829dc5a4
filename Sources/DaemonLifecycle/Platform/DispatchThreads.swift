// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// A check whether Swift's pool, whose threads are Dispatch's, accepts work without blocking.
///
/// When Dispatch needs a thread and none is available, it does not fail: the caller sleeps, a second at a time, until
/// there is one. So the package checks first, and skips its checks of the pool and the main actor if there is none.
enum DispatchThreads {
  /// Less than the five seconds for which Dispatch keeps an idle thread.
  private static let keeps = Duration.seconds(4)
  /// The time at which one of its threads last did work of this package, or a thread was available; in nanoseconds.
  private static let lastHad = Atomic<Int64>(.min)

  /// Whether a thread is available, as far as that can be known: another caller may take the last one at this moment.
  /// It starts a thread to find out only if none was seen for four seconds.
  static var canBeHad: Bool {
    let last = MonotonicTime(nanoseconds: lastHad.load(ordering: .relaxed))
    return last.duration(to: .now()) < keeps || canBeHadNow
  }

  /// The same for this very moment, found by starting a thread: for a caller that must not block.
  static var canBeHadNow: Bool {
    guard Thread.spawn(named: "lifecycle-try", {}) else { return false }
    noteHad()
    return true
  }

  /// Notes that one of its threads runs work of this package.
  static func noteHad() { lastHad.store(MonotonicTime.now().nanoseconds, ordering: .relaxed) }
}
