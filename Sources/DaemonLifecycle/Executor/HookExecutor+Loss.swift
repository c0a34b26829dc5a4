// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

// Other code of the process has closed descriptors that are ours: close_range(2), or a number closed twice.
extension HookExecutor {
  /// As the leader: replaces the descriptors that are gone, and has the client do the same.
  ///
  /// A descriptor that is not ours any more is never closed, read or written: its number may be somebody else's.
  func repairDescriptors() {
    let isRepaired = poll.repair()
    let failure = poll.failure
    let isNews = state.withLock { state in
      defer { state.lacksDescriptors = failure != nil }
      // Once for each loss, however often the leader tries to get descriptors again.
      return failure == nil || !state.lacksDescriptors
    }
    if isRepaired {
      watchfulUntil.store(
        MonotonicTime.now().nanoseconds + Self.watchNanoseconds, ordering: .relaxed)
    }
    if isNews { client?.descriptorsWereLost(isRepaired: isRepaired, failure: failure) }
  }

  /// For a while after a loss the leader checks whether there is another one: a loop that closes one number after
  /// another is noticed at the first of ours, and may come to the others, and to the new ones, later.
  var isWatchful: Bool {
    let until = watchfulUntil.load(ordering: .relaxed)
    return until != 0 && MonotonicTime.now().nanoseconds < until
  }

  static let watchNanoseconds: Int64 = 5_000_000_000
  static let watchMilliseconds: Int32 = 50

  /// Of two time-outs, of which -1 is none.
  static func shorter(_ a: Int32, _ b: Int32) -> Int32 { a < 0 ? b : min(a, b) }
}
