// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The time of a mock's core, which passes only when a test advances it.
final class VirtualTime: Sendable {
  private let nanoseconds = Atomic<Int64>(0)
  private let random: Mutex<SplitMix>

  init(seed: UInt64 = 0) { random = Mutex(SplitMix(seed: seed)) }

  var now: MonotonicTime { MonotonicTime(nanoseconds: nanoseconds.load(ordering: .acquiring)) }
  func advance(to time: MonotonicTime) {
    nanoseconds.max(time.nanoseconds, ordering: .acquiringAndReleasing)
  }

  @inline(never) var randomShare: Double {
    random.withLock { Double.random(in: 0..<1, using: &$0) }
  }
}
