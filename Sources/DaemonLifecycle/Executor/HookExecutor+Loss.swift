// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

// The recovery when other code of the process has closed the executor's descriptors: with close_range(2), or by closing
// a number twice.
extension HookExecutor {
  /// Replaces the lost descriptors, and has the client do the same. Called on the leader.
  ///
  /// A descriptor that was lost is never closed, read or written, since its number may belong to another file.
  func repairDescriptors() {
    let isRepaired = poll.repair()
    let failure = poll.failure
    let isNews = state.withLock { state in
      defer { state.lacksDescriptors = failure != nil }
      // Once for each loss, however often the leader tries to open new descriptors.
      return failure == nil || !state.lacksDescriptors
    }
    if isRepaired {
      watchfulUntil.store(
        MonotonicTime.now().nanoseconds + Self.watchNanoseconds, ordering: .relaxed)
    }
    if isNews { client?.descriptorsWereLost(isRepaired: isRepaired, failure: failure) }
  }

  /// Whether the leader checks for further losses, as for a while after a loss: a loop that closes one number after
  /// another is noticed at the executor's first, and may reach the others, and the new ones, later.
  var isWatchful: Bool {
    let until = watchfulUntil.load(ordering: .relaxed)
    return until != 0 && MonotonicTime.now().nanoseconds < until
  }

  static let watchNanoseconds: Int64 = 5_000_000_000
  static let watchMilliseconds: Int32 = 50

  /// Returns the shorter of two time-outs; -1 is none.
  static func shorter(_ a: Int32, _ b: Int32) -> Int32 { a < 0 ? b : min(a, b) }
}
